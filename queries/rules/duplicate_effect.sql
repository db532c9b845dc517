-- Finds business facts that are booked more than once: more is booked than the provider has, and leaving out
-- rows that repeat others makes it equal. The earliest row is kept.
--
-- Proof: `local_effect` rows of one object (after aliases), less what undoes them, against `provider_effect`.
-- `found_minor` less `expected_minor` is the excess. Signed as it moves the balance. Event ids play no part:
-- two events of one payment that each booked it are found like one event that was booked twice.
select
    'duplicate_effect' as kind, '' as cause, provider, account, mode, object_id, kind as effect, currency,
    expected_minor, found_minor, '' as expected_state, '' as found_state
from differing_unit
where reading = 'repeated'
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
