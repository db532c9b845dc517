-- Finds steps that a payment's life does not have. Cause `paid_after_refunded` and its siblings: a refund or
-- dispute was booked and the local status was set back afterwards. Cause `capture_exceeds_authorisation`:
-- several captures are booked and together exceed what was authorised.
--
-- Proof: `local_state.updated_at_us` is later than the last `local_effect.applied_at_us` of the refund or
-- dispute that the provider's status stands for; `local_effect` totals against the highest
-- `provider_state.authorized_minor`.
with
-- Where the books have several, the lowest.
set_back as (
    select unexplained_status.*,
        row_number() over (partition by provider, account, mode, object_id order by found_rank) as place
    from unexplained_status
    where went_back = 1
)
select
    'forbidden_transition' as kind, 'capture_exceeds_authorisation' as cause,
    provider, account, mode, object_id, kind as effect, currency,
    expected_minor, found_minor, '' as expected_state, '' as found_state
from differing_unit
where reading = 'above_authorisation'
union all
select
    'forbidden_transition', found_state || '_after_' || expected_state, provider, account, mode, object_id, '', '',
    cast(null as bigint), cast(null as bigint), expected_state, found_state
from set_back
where place = 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
