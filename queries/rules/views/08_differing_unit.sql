-- The differing units with the reading that explains the difference best:
--
-- repeated             more is booked than the provider has, and leaving out rows that repeat others makes it right
-- above_authorisation  several captures are booked, together above what the payment may capture
-- other                neither
create view differing_unit as
with
-- Rows in booking order, with the running total.
lined_up as (
    select differing_row.*,
        row_number() over booked as position,
        sum(net_minor) over (booked rows between unbounded preceding and current row) as running_minor
    from differing_row
    window booked as (
        partition by provider, account, mode, root_id, object_id, kind
        order by applied_at_us, effect_id, net_minor, signed_minor
    )
),
-- The first place of each row's amount, and the first place where the running total is the provider's.
marked as (
    select lined_up.*,
        min(position) over (
            partition by provider, account, mode, root_id, object_id, kind, net_minor
        ) as first_of_amount,
        min(case when running_minor = expected_minor then position end) over (
            partition by provider, account, mode, root_id, object_id, kind
        ) as right_at
    from lined_up
),
summed as (
    select provider, account, mode, root_id, object_id, kind, currency, lines, expected_minor,
        cast(sum(net_minor) as bigint) as found_minor, count(*) as rows_left, max(right_at) as right_at,
        sum(case when position > first_of_amount then 1 else 0 end) as repeats,
        sum(case when position > first_of_amount then 0 else net_minor end) as without_repeats_minor,
        -- Rows after the point where all was right that neither repeat a row up to there nor the whole amount.
        sum(case
            when position > right_at and first_of_amount > right_at and net_minor <> expected_minor
            then 1 else 0
        end) as strangers
    from marked
    group by provider, account, mode, root_id, object_id, kind, currency, lines, expected_minor
),
-- Two ways to be doubled: without every row that repeats the amount of an earlier one it is right; or it was
-- right at some point, and what follows is made of repeats or is the whole amount again.
doubled as (
    select summed.*,
        case
            when rows_left < 2 or abs(found_minor) <= abs(expected_minor) then 0
            when repeats > 0 and without_repeats_minor = expected_minor then 1
            when right_at is null then 0
            when strangers = 0 or found_minor - expected_minor = expected_minor then 1
            else 0
        end as is_doubled
    from summed
)
select doubled.*,
    case
        when is_doubled = 1 then 'repeated'
        when kind = 'credit' and lines >= 2 and found_minor > provider_status.authorized_minor
            then 'above_authorisation'
        else 'other'
    end as reading
from doubled
left join provider_status using (provider, account, mode, root_id);
