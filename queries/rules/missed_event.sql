-- Finds events that the provider has and the inbox never got, where what they stand for is not booked. Events
-- of one effect that are missing together are one row. Cause `not_subscribed`: only event types that the
-- endpoint does not listen to (`wanted` = 0) announce the effect. Cause `consequence_unknown`: the event moves
-- nothing that the books hold, so nobody can tell whether its absence matters.
--
-- Proof: `provider_event` has the event, `inbox_event` does not, the provider retries none of them any more
-- (`settled` = 1), and no `local_effect` of the object has anything left. For statuses: `local_state` is
-- behind `provider_state`. An event that never came although its effect is booked is no row here.
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
-- Per object and effect kind: what became of the events that announce it.
delivery as (
    select said.provider, said.account, said.mode, said.root_id, said.object_id, said.tracks as kind,
        max(case when inbox.status_rank = 5 then 1 else 0 end) as has_dead,
        max(case when inbox.status_rank = 4 then 1 else 0 end) as has_parked,
        max(case when inbox.status_rank = 1 then 1 else 0 end) as has_applied,
        max(case when inbox.status_rank = 0 then 1 else 0 end) as has_received,
        max(case when inbox.status_rank in (0, 1, 4, 5) then 1 else 0 end) as has_evidence,
        max(case when inbox.status_rank in (2, 3) then 1 else 0 end) as has_set_aside,
        max(case when inbox.event_id is null and said.wanted = 1 then 1 else 0 end) as has_missed,
        max(case when inbox.event_id is null and said.wanted = 1 and said.settled = 0 then 1 else 0 end)
            as has_retried
    from provider_event as said
    left join inbox using (provider, account, mode, event_id)
    where said.tracks not in ('', 'state')
    group by said.provider, said.account, said.mode, said.root_id, said.object_id, said.tracks
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
-- Statuses behind the provider's whose event never came.
lost as (
    select behind.provider, behind.account, behind.mode, behind.object_id, behind.expected_state,
        behind.found_state, behind.found_rank
    from behind
    join state_delivery using (provider, account, mode, root_id)
    where has_missed > 0 and has_retried + has_dead + has_parked + has_received = 0
),
-- Payments with a local status: whether a status event mattered can be looked up there.
stated as (
    select provider, account, mode, root_id
    from local_state
    group by provider, account, mode, root_id
),
-- Events without an effect whose consequence cannot be looked up.
other_event as (
    select said.provider, said.account, said.mode,
        case when said.object_id = '' then said.event_id else said.object_id end as object_id
    from provider_event as said
    left join inbox using (provider, account, mode, event_id)
    left join stated using (provider, account, mode, root_id)
    left join explained using (provider, account, mode, root_id)
    where inbox.event_id is null and said.wanted = 1 and said.settled = 1
        and (said.tracks = '' or (said.tracks = 'state' and stated.root_id is null and explained.root_id is null))
),
-- One row per object; a status that is known to lag tells more than an event that cannot be looked up.
without_money as (
    select provider, account, mode, object_id, cause, expected_state, found_state,
        row_number() over (partition by provider, account, mode, object_id order by cause, found_rank) as copy
    from (
        select provider, account, mode, object_id, '' as cause, expected_state, found_state, found_rank
        from lost
        union all
        select provider, account, mode, object_id, 'consequence_unknown', '', '', 0
        from other_event
    ) as events
)
select
    'missed_event' as kind, case when has_missed = 1 then '' else 'not_subscribed' end as cause,
    judged_unit.provider, judged_unit.account, judged_unit.mode, judged_unit.object_id,
    judged_unit.kind as effect, judged_unit.currency,
    cast(judged_unit.expected_minor as bigint) as expected_minor,
    cast(judged_unit.found_minor as bigint) as found_minor,
    '' as expected_state, '' as found_state
from judged_unit
join delivery using (provider, account, mode, root_id, object_id, kind)
where verdict = 'missing' and currency = unit_currency
    and has_retried = 0 and has_evidence = 0 and (has_set_aside = 0 or has_missed = 1)
union all
select
    'missed_event', cause, provider, account, mode, object_id, '', '',
    cast(null as bigint), cast(null as bigint), expected_state, found_state
from without_money
where copy = 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
