-- Finds money that moved at the provider, that the books do not have, and that no event can bring any more.
--
-- Proof: `provider_effect` has the object, no `local_effect` of it has anything left, and no row of
-- `provider_event` announces it. `expected_minor` is what is missing. Signed as it moves the balance.
select
    'missing_effect' as kind, '' as cause, provider, account, mode, object_id, kind as effect, currency,
    expected_minor, found_minor, '' as expected_state, '' as found_state
from unit
where verdict = 'missing' and has_event = 0
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
