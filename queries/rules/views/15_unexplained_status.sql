-- Statuses behind the provider's that no event in transit, lost or waiting in the inbox explains.
--
-- `is_swapped`: the payment's effects were booked in another order than they happened in. `went_back`: the status
-- was set to `paid` or lower after the refund or dispute was booked that the provider's status stands for.
create view unexplained_status as
with
-- Pairs that must keep their order: a payment before its refunds and disputes, a dispute's withdrawal before
-- its reinstatement. `is_after` tells the second of the pair. Units over all time: an order can break across
-- the cut-off.
step as (
    select unit.provider, unit.account, unit.mode, unit.root_id, pair.pair, pair.is_after, unit.occurred_us,
        unit.first_booked_us
    from unit
    join (
        select 1 as pair, 'credit' as kind, 0 as is_after
        union all select 1, 'refund', 1
        union all select 1, 'dispute_withdrawn', 1
        union all select 2, 'dispute_withdrawn', 0
        union all select 2, 'dispute_reinstated', 1
    ) as pair using (kind)
    where unit.has_provider = 1 and unit.has_local = 1
),
-- Payments where the second was booked before a first that had happened by then.
swapped as (
    select distinct provider, account, mode, root_id
    from (
        select provider, account, mode, root_id, is_after, first_booked_us,
            max(case when is_after = 0 then first_booked_us end) over (
                partition by provider, account, mode, root_id, pair
                order by occurred_us, is_after
                range between unbounded preceding and current row
            ) as latest_before_us
        from step
    ) as steps
    where is_after = 1 and latest_before_us > first_booked_us
),
-- The last booking of a refund or of a dispute's withdrawal that has something left.
ended as (
    select provider, account, mode, root_id, kind, max(last_booked_us) as last_us
    from unit
    where has_local = 1 and kind in ('refund', 'dispute_withdrawn')
    group by provider, account, mode, root_id, kind
)
select lagging.*,
    case when swapped.root_id is null then 0 else 1 end as is_swapped,
    case
        when swapped.root_id is null and lagging.found_rank <= 3 and lagging.updated_at_us > ended.last_us
        then 1 else 0
    end as went_back
from lagging_status as lagging
left join swapped
    on swapped.provider = lagging.provider and swapped.account = lagging.account and swapped.mode = lagging.mode
    and swapped.root_id = lagging.root_id
left join ended
    on ended.provider = lagging.provider and ended.account = lagging.account and ended.mode = lagging.mode
    and ended.root_id = lagging.root_id
    and ended.kind = case
        when lagging.expected_state in ('partially_refunded', 'refunded') then 'refund'
        when lagging.expected_state in ('disputed', 'dispute_lost') then 'dispute_withdrawn'
    end
where lagging.delivery in ('none', 'dealt_with');
