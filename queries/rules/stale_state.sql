-- Finds local statuses that are older than the provider's and that nothing else explains. Cause
-- `applied_out_of_order`: the effects were booked in another order than they happened in.
--
-- Proof: `local_state.status` against the highest `provider_state.status` of the payment; for the order
-- `provider_effect.occurred_at_us` against `local_effect.applied_at_us`. A status whose effect is missing
-- follows from that finding, and one whose event was lost or lies in the inbox is found under that event.
with
-- Where the books have several, the lowest.
stale as (
    select unexplained_status.*,
        row_number() over (partition by provider, account, mode, object_id order by found_rank) as place
    from unexplained_status
    where went_back = 0
)
select
    'stale_state' as kind, case when is_swapped = 1 then 'applied_out_of_order' else '' end as cause,
    provider, account, mode, object_id, '' as effect, '' as currency,
    cast(null as bigint) as expected_minor, cast(null as bigint) as found_minor, expected_state, found_state
from stale
where place = 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
