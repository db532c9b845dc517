-- Finds local statuses that are older than the provider's and that nothing else explains. Cause
-- `applied_out_of_order`: the effects were booked in another order than they happened in.
--
-- Proof: `local_state.status` against the highest `provider_state.status` of the payment; for the order
-- `provider_effect.occurred_at_us` against `local_effect.applied_at_us`. A status whose effect is missing
-- follows from that finding, and one whose event was lost or lies in the inbox is found under that event.
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
-- The inbox's word on each event. Where it has an event twice the most advanced status counts.
inbox as (
    select provider, account, mode, event_id,
        max(case status
            when 'received' then 0 when 'applied' then 1 when 'superseded' then 2
            when 'ignored' then 3 when 'parked' then 4 when 'dead' then 5
        end) as status_rank
    from inbox_event
    group by provider, account, mode, event_id
),
-- The provider's word on each payment: the highest status that one of its records says, and when.
said_state as (
    select provider, account, mode, root_id, at_us, refunded_minor,
        case status
            when 'pending' then 0 when 'failed' then 1 when 'canceled' then 2 when 'paid' then 3
            when 'partially_refunded' then 4 when 'refunded' then 5 when 'disputed' then 6
            when 'dispute_lost' then 7
        end as status_rank
    from provider_state
),
highest as (
    select provider, account, mode, root_id, max(status_rank) as status_rank,
        max(refunded_minor) as refunded_minor
    from said_state
    group by provider, account, mode, root_id
),
expected as (
    select highest.provider, highest.account, highest.mode, highest.root_id, highest.status_rank,
        highest.refunded_minor, max(said_state.at_us) as at_us
    from highest
    join said_state using (provider, account, mode, root_id, status_rank)
    group by highest.provider, highest.account, highest.mode, highest.root_id, highest.status_rank,
        highest.refunded_minor
),
-- Payments with an effect that one side lacks: a status that lags there follows from it.
explained as (
    select provider, account, mode, root_id
    from judged_unit
    where verdict in ('misattributed', 'missing', 'orphan')
    group by provider, account, mode, root_id
),
-- Local statuses of all other payments, beside the provider's.
judged as (
    select state.provider, state.account, state.mode, state.root_id, state.object_id, state.changed_by,
        state.refunded_minor, state.updated_at_us, state.status as found_state,
        expected.refunded_minor as expected_refunded_minor, expected.status_rank as expected_rank,
        expected.at_us,
        case expected.status_rank
            when 0 then 'pending' when 1 then 'failed' when 2 then 'canceled' when 3 then 'paid'
            when 4 then 'partially_refunded' when 5 then 'refunded' when 6 then 'disputed'
            when 7 then 'dispute_lost'
        end as expected_state,
        case state.status
            when 'pending' then 0 when 'failed' then 1 when 'canceled' then 2 when 'paid' then 3
            when 'partially_refunded' then 4 when 'refunded' then 5 when 'disputed' then 6
            when 'dispute_lost' then 7
        end as found_rank
    from local_state as state
    join expected using (provider, account, mode, root_id)
    left join explained using (provider, account, mode, root_id)
    where explained.root_id is null
),
-- Payments where a status may go back: the money of a dispute was returned, or a refund that an event
-- announces moved no money (it failed) and no dispute has a say. The engine also knows a failed refund from
-- the provider's list of refunds, which is not among these relations.
moved as (
    select provider, account, mode, root_id,
        max(case when kind = 'dispute_withdrawn' then 1 else 0 end) as has_withdrawn,
        max(case when kind = 'dispute_reinstated' then 1 else 0 end) as has_reinstated
    from provider_effect
    group by provider, account, mode, root_id
),
moved_object as (
    select provider, account, mode, root_id, object_id
    from provider_effect
    group by provider, account, mode, root_id, object_id
),
failed_refund as (
    select said.provider, said.account, said.mode, said.root_id
    from provider_event as said
    left join moved_object using (provider, account, mode, root_id, object_id)
    where said.tracks = 'refund' and said.object_id <> said.root_id and moved_object.object_id is null
    group by said.provider, said.account, said.mode, said.root_id
),
-- Statuses behind the provider's, or left over from before such a way back. A manual change that is newer
-- than the provider's word is a person's, and an attempt that the books gave up early is no disagreement.
behind as (
    select judged.*
    from judged
    left join moved using (provider, account, mode, root_id)
    left join failed_refund using (provider, account, mode, root_id)
    where judged.found_rank <> judged.expected_rank
        and not (judged.found_rank > judged.expected_rank and judged.found_rank <= 2)
        and not (judged.changed_by = 'operator' and judged.updated_at_us > judged.at_us)
        and (
            judged.found_rank < judged.expected_rank
            or (judged.found_rank = 6 and moved.has_reinstated = 1)
            or (
                judged.found_rank in (4, 5) and failed_refund.root_id is not null
                and coalesce(moved.has_withdrawn, 0) = 0 and coalesce(moved.has_reinstated, 0) = 0
            )
        )
),
-- Per payment: what became of its wanted status events that nothing newer in the inbox has overtaken.
newest_held as (
    select said.provider, said.account, said.mode, said.root_id, max(said.created_us) as created_us
    from provider_event as said
    join inbox using (provider, account, mode, event_id)
    group by said.provider, said.account, said.mode, said.root_id
),
state_delivery as (
    select said.provider, said.account, said.mode, said.root_id,
        max(case when inbox.status_rank = 5 then 1 else 0 end) as has_dead,
        max(case when inbox.status_rank = 4 then 1 else 0 end) as has_parked,
        max(case when inbox.status_rank = 0 then 1 else 0 end) as has_received,
        max(case when inbox.event_id is null and said.settled = 1 then 1 else 0 end) as has_missed,
        max(case when inbox.event_id is null and said.settled = 0 then 1 else 0 end) as has_retried
    from provider_event as said
    left join inbox using (provider, account, mode, event_id)
    left join newest_held using (provider, account, mode, root_id)
    where said.tracks = 'state' and said.wanted = 1
        and (newest_held.created_us is null or newest_held.created_us <= said.created_us)
    group by said.provider, said.account, said.mode, said.root_id
),
-- When each effect that both sides have happened at the provider, and when its first row was booked.
happened as (
    select provider, account, mode, root_id, object_id, kind, min(occurred_at_us) as occurred_at_us
    from provider_effect
    group by provider, account, mode, root_id, object_id, kind
),
booked_at as (
    select provider, account, mode, root_id, object_id, kind, min(applied_at_us) as first_us,
        max(applied_at_us) as last_us
    from placed
    where is_astray = 0
    group by provider, account, mode, root_id, object_id, kind
),
-- Units over all time, in the window or not: an order can break across the cut-off.
held as (
    select provider, account, mode, root_id, object_id, kind, has_provider, has_local
    from unit
    where currency = unit_currency
),
-- Pairs that must keep their order: a payment before its refunds and disputes, a dispute's withdrawal before
-- its reinstatement. `is_after` tells the second of the pair.
step as (
    select held.provider, held.account, held.mode, held.root_id, pair.pair, pair.is_after,
        happened.occurred_at_us, booked_at.first_us
    from held
    join happened using (provider, account, mode, root_id, object_id, kind)
    join booked_at using (provider, account, mode, root_id, object_id, kind)
    join (
        select 1 as pair, 'credit' as kind, 0 as is_after
        union all select 1, 'refund', 1
        union all select 1, 'dispute_withdrawn', 1
        union all select 2, 'dispute_withdrawn', 0
        union all select 2, 'dispute_reinstated', 1
    ) as pair using (kind)
    where held.has_provider = 1 and held.has_local = 1
),
-- Payments where the second was booked before a first that had happened by then.
swapped as (
    select provider, account, mode, root_id
    from (
        select provider, account, mode, root_id, is_after, first_us,
            max(case when is_after = 0 then first_us end) over (
                partition by provider, account, mode, root_id, pair
                order by occurred_at_us, is_after
                range between unbounded preceding and current row
            ) as latest_first_us
        from step
    ) as steps
    where is_after = 1 and latest_first_us > first_us
    group by provider, account, mode, root_id
),
-- The last booking of a refund or of a dispute's withdrawal that has something left.
ended as (
    select held.provider, held.account, held.mode, held.root_id, held.kind, max(booked_at.last_us) as last_us
    from held
    join booked_at using (provider, account, mode, root_id, object_id, kind)
    where held.has_local = 1 and held.kind in ('refund', 'dispute_withdrawn')
    group by held.provider, held.account, held.mode, held.root_id, held.kind
),
-- Statuses behind the provider's that no event in transit, in the inbox or lost explains.
unexplained as (
    select behind.*, case when swapped.root_id is null then 0 else 1 end as is_swapped,
        case
            when swapped.root_id is null and behind.found_rank <= 3 and behind.updated_at_us > ended.last_us
            then 1 else 0
        end as went_back
    from behind
    left join state_delivery using (provider, account, mode, root_id)
    left join swapped using (provider, account, mode, root_id)
    left join ended
        on ended.provider = behind.provider and ended.account = behind.account and ended.mode = behind.mode
        and ended.root_id = behind.root_id
        and ended.kind = case
            when behind.expected_rank in (4, 5) then 'refund'
            when behind.expected_rank in (6, 7) then 'dispute_withdrawn'
        end
    where state_delivery.root_id is null
        or has_retried + has_dead + has_parked + has_received + has_missed = 0
),
stale as (
    select unexplained.*,
        row_number() over (partition by provider, account, mode, object_id order by found_rank) as copy
    from unexplained
    where went_back = 0
)
select
    'stale_state' as kind, case when is_swapped = 1 then 'applied_out_of_order' else '' end as cause,
    provider, account, mode, object_id, '' as effect, '' as currency,
    cast(null as bigint) as expected_minor, cast(null as bigint) as found_minor, expected_state, found_state
from stale
where copy = 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
