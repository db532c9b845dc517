-- The provider's word on each payment: the highest status that one of its records says, when the last of those
-- records was made, and the highest totals refunded and authorised (null where no record says).
create view provider_status as
select provider, account, mode, root_id, status as expected_state, status_rank as expected_rank, at_us,
    refunded_minor, authorized_minor
from (
    select provider, account, mode, root_id, status, status_rank, at_us,
        max(refunded_minor) over payment as refunded_minor,
        max(authorized_minor) over payment as authorized_minor,
        row_number() over (payment order by status_rank desc, at_us desc) as place
    from provider_state
    join status_rank using (status)
    window payment as (partition by provider, account, mode, root_id)
) as ranked
where place = 1;
