-- Finds local rows that name the event of one payment and are booked on another: the totals agree and two
-- balances are wrong. One row per object that the money belongs to.
--
-- Proof: `local_effect.event_id` is an event of `provider_event` whose `root_id` is not the row's `root_id`.
-- `expected_minor` is what the provider has of the object, `found_minor` what is booked for it in both places.
-- A row that was undone (`corrects_effect_id`) counts no more. Amounts are signed as they move the balance.
select
    'misattributed_effect' as kind, '' as cause, provider, account, mode, object_id, kind as effect, currency,
    expected_minor, found_minor + astray_minor as found_minor, '' as expected_state, '' as found_state
from unit
where verdict = 'misattributed'
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
