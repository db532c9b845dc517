-- Finds business facts that are booked more than once: more is booked than the provider has, and leaving out
-- rows that repeat others makes it equal. The earliest row is kept.
--
-- Proof: `local_effect` rows of one object (after aliases), less what undoes them, against `provider_effect`.
-- `found_minor` less `expected_minor` is the excess. Signed as it moves the balance. Event ids play no part:
-- two events of one payment that each booked it are found like one event that was booked twice.
--
-- Steps `astray` to `judged_unit` are the same text in every rule about money; read them once.
with
-- Local rows that name an event of another payment (and none of their own), and that payment.
astray as (
    select booked.provider, booked.account, booked.mode, booked.root_id, booked.kind, booked.effect_id,
        min(said.root_id) as home_root_id
    from local_effect as booked
    join provider_event as said
        on said.provider = booked.provider and said.account = booked.account and said.mode = booked.mode
        and said.event_id = booked.event_id and said.tracks = booked.kind
    where booked.corrects_effect_id = ''
    group by booked.provider, booked.account, booked.mode, booked.root_id, booked.kind, booked.effect_id
    having max(case when said.root_id = booked.root_id then 1 else 0 end) = 0
),
-- The object there that they belong to.
home as (
    select astray.provider, astray.account, astray.mode, astray.root_id, astray.kind, astray.effect_id,
        astray.home_root_id, min(said.object_id) as home_object_id
    from astray
    join local_effect as booked using (provider, account, mode, root_id, kind, effect_id)
    join provider_event as said
        on said.provider = booked.provider and said.account = booked.account and said.mode = booked.mode
        and said.event_id = booked.event_id and said.tracks = booked.kind and said.root_id = astray.home_root_id
    where booked.corrects_effect_id = ''
    group by astray.provider, astray.account, astray.mode, astray.root_id, astray.kind, astray.effect_id,
        astray.home_root_id
),
-- Every local row under the object that it counts for; a row that undoes another follows that row.
placed as (
    select booked.provider, booked.account, booked.mode,
        cast(coalesce(home.home_root_id, booked.root_id) as text) as root_id,
        cast(coalesce(home.home_object_id, booked.object_id) as text) as object_id,
        booked.kind, booked.currency, booked.in_window, booked.applied_at_us,
        booked.effect_id, booked.corrects_effect_id,
        booked.amount_minor * case when booked.kind in ('credit', 'dispute_reinstated') then 1 else -1 end
            as signed_minor,
        case when home.effect_id is null then 0 else 1 end as is_astray
    from local_effect as booked
    left join home
        on home.provider = booked.provider and home.account = booked.account and home.mode = booked.mode
        and home.root_id = booked.root_id and home.kind = booked.kind
        and home.effect_id
            = case when booked.corrects_effect_id = '' then booked.effect_id else booked.corrects_effect_id end
),
-- Both sides' signed totals per object, effect kind and currency, over all time and inside the window. Events
-- that announce an effect add a line without money.
amount as (
    select provider, account, mode, root_id, object_id, kind, currency,
        sum(expected_minor) as expected_minor, sum(found_minor) as found_minor,
        sum(astray_minor) as astray_minor, sum(lines) as lines,
        sum(in_window * expected_minor) as expected_in_minor,
        sum(in_window * (found_minor + astray_minor)) as found_in_minor,
        max(in_window) as in_window, max(is_announced) as is_announced
    from (
        select provider, account, mode, root_id, object_id, kind, currency, in_window,
            amount_minor * case when kind in ('credit', 'dispute_reinstated') then 1 else -1 end
                as expected_minor,
            0 as found_minor, 0 as astray_minor, 0 as lines, 0 as is_announced
        from provider_effect
        union all
        select provider, account, mode, root_id, object_id, kind, currency, in_window,
            0, (1 - is_astray) * signed_minor, is_astray * signed_minor,
            case when is_astray = 0 and corrects_effect_id = '' then 1 else 0 end, 0
        from placed
        union all
        select provider, account, mode, root_id, object_id, tracks, '', 0, 0, 0, 0, 0, 1
        from provider_event
        where tracks not in ('', 'state')
    ) as sides
    group by provider, account, mode, root_id, object_id, kind, currency
),
-- Beside each amount, what holds of its object and effect kind (its unit) as a whole.
unit as (
    select amount.*,
        max(case when expected_minor <> 0 then 1 else 0 end) over same_unit as has_provider,
        max(case when found_minor <> 0 then 1 else 0 end) over same_unit as has_local,
        max(case when astray_minor <> 0 then 1 else 0 end) over same_unit as has_astray,
        max(case when expected_minor <> found_minor then 1 else 0 end) over same_unit as differs,
        sum(case when expected_minor <> 0 or found_minor <> 0 then 1 else 0 end) over same_unit as currencies,
        sum(lines) over same_unit as unit_lines,
        max(is_announced) over same_unit as has_event,
        case when max(in_window) over same_unit + max(is_announced) over same_unit > 0 then 1 else 0 end
            as touches_window,
        coalesce(
            min(case when expected_minor <> 0 then currency end) over same_unit,
            min(case when found_minor <> 0 then currency end) over same_unit,
            min(case when astray_minor <> 0 then currency end) over same_unit
        ) as unit_currency,
        min(case when expected_in_minor <> found_in_minor then currency end) over same_unit as cut_currency
    from amount
    window same_unit as (partition by provider, account, mode, root_id, object_id, kind)
),
-- What a unit is: one thing only, and in this order, so that one cause gives one finding.
judged_unit as (
    select unit.*,
        case
            when touches_window = 0 then 'outside'
            when has_astray = 1 then 'misattributed'
            when differs = 0 and cut_currency is not null then 'cut'
            when differs = 0 then 'agreed'
            when has_local = 0 then 'missing'
            when has_provider = 0 then 'orphan'
            when currencies > 1 then 'mixed'
            else 'differing'
        end as verdict
    from unit
),
-- Objects of which both sides have something, in one currency, with other totals.
differing as (
    select provider, account, mode, root_id, object_id, kind, currency, unit_lines as lines,
        expected_minor, found_minor
    from judged_unit
    where verdict = 'differing' and currency = unit_currency
),
-- Their local rows. Where a row id is repeated, what undoes it is taken off the latest copy.
original as (
    select placed.provider, placed.account, placed.mode, placed.root_id, placed.object_id, placed.kind,
        placed.currency, placed.effect_id, placed.applied_at_us, placed.signed_minor, differing.lines,
        differing.expected_minor,
        row_number() over (
            partition by placed.provider, placed.account, placed.mode, placed.root_id, placed.object_id,
                placed.kind, placed.currency, placed.effect_id
            order by placed.applied_at_us desc, placed.signed_minor desc
        ) as copy
    from placed
    join differing using (provider, account, mode, root_id, object_id, kind, currency)
    where placed.is_astray = 0 and placed.corrects_effect_id = ''
),
undone as (
    select provider, account, mode, root_id, object_id, kind, currency, corrects_effect_id as effect_id,
        sum(signed_minor) as signed_minor
    from placed
    where is_astray = 0 and corrects_effect_id <> ''
    group by provider, account, mode, root_id, object_id, kind, currency, corrects_effect_id
),
-- What is left of each row, and rows that undo one that is not there.
net as (
    select original.provider, original.account, original.mode, original.root_id, original.object_id,
        original.kind, original.currency, original.lines, original.expected_minor, original.effect_id,
        original.applied_at_us,
        original.signed_minor as booked_minor,
        original.signed_minor + case when original.copy = 1 then coalesce(undone.signed_minor, 0) else 0 end
            as net_minor
    from original
    left join undone using (provider, account, mode, root_id, object_id, kind, currency, effect_id)
    union all
    select placed.provider, placed.account, placed.mode, placed.root_id, placed.object_id, placed.kind,
        placed.currency, differing.lines, differing.expected_minor, placed.effect_id, placed.applied_at_us,
        placed.signed_minor, placed.signed_minor
    from placed
    join differing using (provider, account, mode, root_id, object_id, kind, currency)
    left join original
        on original.provider = placed.provider and original.account = placed.account
        and original.mode = placed.mode and original.root_id = placed.root_id
        and original.object_id = placed.object_id and original.kind = placed.kind
        and original.currency = placed.currency and original.effect_id = placed.corrects_effect_id
        and original.copy = 1
    where placed.is_astray = 0 and placed.corrects_effect_id <> '' and original.effect_id is null
),
-- Rows with something left, in booking order, with the running total.
lined_up as (
    select provider, account, mode, root_id, object_id, kind, currency, lines, expected_minor, net_minor,
        row_number() over (
            partition by provider, account, mode, root_id, object_id, kind
            order by applied_at_us, effect_id, net_minor, booked_minor
        ) as position,
        sum(net_minor) over (
            partition by provider, account, mode, root_id, object_id, kind
            order by applied_at_us, effect_id, net_minor, booked_minor
            rows between unbounded preceding and current row
        ) as running_minor
    from net
    where net_minor <> 0
),
-- The first place of each row's amount, and the first place where the running total is the provider's.
placed_amount as (
    select lined_up.*,
        min(position) over (
            partition by provider, account, mode, root_id, object_id, kind, net_minor
        ) as first_of_amount,
        min(case when running_minor = expected_minor then position end) over (
            partition by provider, account, mode, root_id, object_id, kind
        ) as right_at
    from lined_up
),
-- Two readings under which the rest is right: leave out every row that repeats the amount of an earlier one; or
-- leave out every row after the point where the running total was right, if each of them repeats the amount of
-- a kept row or the whole amount, or if together they are the whole amount again.
reading as (
    select provider, account, mode, root_id, object_id, kind, currency, lines, expected_minor,
        sum(net_minor) as found_minor, count(*) as rows_left, max(right_at) as right_at,
        sum(case when position > first_of_amount then 1 else 0 end) as repeats,
        sum(case when position > first_of_amount then 0 else net_minor end) as without_repeats_minor,
        sum(case
            when position > right_at and first_of_amount > right_at and net_minor <> expected_minor
            then 1 else 0
        end) as strangers
    from placed_amount
    group by provider, account, mode, root_id, object_id, kind, currency, lines, expected_minor
),
judged_rows as (
    select reading.*,
        case
            when rows_left < 2 or abs(found_minor) <= abs(expected_minor) then 0
            when repeats > 0 and without_repeats_minor = expected_minor then 1
            when right_at is null then 0
            when strangers = 0 or found_minor - expected_minor = expected_minor then 1
            else 0
        end as is_doubled
    from reading
)
select
    'duplicate_effect' as kind, '' as cause, provider, account, mode, object_id, kind as effect, currency,
    cast(expected_minor as bigint) as expected_minor, cast(found_minor as bigint) as found_minor,
    '' as expected_state, '' as found_state
from judged_rows
where is_doubled = 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
