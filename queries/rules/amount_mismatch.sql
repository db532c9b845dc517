-- Finds effects that both sides have in one currency with other totals, and that are no repeats. Cause
-- `rounding`: at most one minor unit a row; `factor=10`, `factor=100`: one side is the other times that;
-- `refunded_total`: the refunds agree one by one and the running total of the local status row does not.
--
-- Proof: the totals of `provider_effect` and `local_effect`; for `refunded_total` the columns `refunded_minor`
-- of `provider_state` (the highest) and `local_state`. Signed as they move the balance.
with
-- The currency that a payment's running total is in.
credited as (
    select provider, account, mode, root_id, min(currency) as currency
    from provider_effect
    where kind = 'credit'
    group by provider, account, mode, root_id
),
-- Payments with a finding on a refund: that explains a running total.
refund_found as (
    select distinct provider, account, mode, root_id
    from judged_amount
    where kind = 'refund' and verdict not in ('outside', 'agreed')
),
-- Statuses that agree (or that the books gave up early) with another running total.
running_total as (
    select provider, account, mode, object_id, expected_refunded_minor, found_refunded_minor,
        coalesce(credited.currency, '') as currency,
        row_number() over (
            partition by provider, account, mode, object_id order by found_rank, found_refunded_minor
        ) as place
    from compared_status
    left join credited using (provider, account, mode, root_id)
    left join refund_found using (provider, account, mode, root_id)
    where refund_found.root_id is null and found_refunded_minor <> expected_refunded_minor
        and (found_rank = expected_rank or (found_rank > expected_rank and found_rank <= 2))
)
select
    'amount_mismatch' as kind,
    case
        when abs(expected_minor - found_minor) <= case when lines > 1 then lines else 1 end then 'rounding'
        when expected_minor = 100 * found_minor or found_minor = 100 * expected_minor then 'factor=100'
        when expected_minor = 10 * found_minor or found_minor = 10 * expected_minor then 'factor=10'
        else ''
    end as cause,
    provider, account, mode, object_id, kind as effect, currency,
    expected_minor, found_minor, '' as expected_state, '' as found_state
from differing_unit
where reading = 'other'
union all
select
    'amount_mismatch', 'refunded_total', provider, account, mode, object_id, '', currency,
    -expected_refunded_minor, -found_refunded_minor, '', ''
from running_total
where place = 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
