-- Finds events that the provider has and the inbox never got, where what they stand for is not booked. Events
-- of one effect that are missing together are one row. Cause `not_subscribed`: only event types that the
-- endpoint does not listen to (`wanted` = 0) announce the effect. Cause `consequence_unknown`: the event moves
-- nothing that the books hold, so nobody can tell whether its absence matters.
--
-- Proof: `provider_event` has the event, `inbox_event` does not, the provider retries none of them any more
-- (`settled` = 1), and no `local_effect` of the object has anything left. For statuses: `local_state` is
-- behind `provider_state`. An event that never came although its effect is booked is no row here.
with
-- Payments with a local status: whether a status event mattered can be looked up there.
stated as (
    select distinct provider, account, mode, root_id
    from local_state
),
-- Events without an effect whose consequence cannot be looked up.
other_event as (
    select provider, account, mode, case when object_id = '' then event_id else object_id end as object_id
    from heard_event
    left join stated using (provider, account, mode, root_id)
    left join explained_payment using (provider, account, mode, root_id)
    where held_as = '' and wanted = 1 and settled = 1
        and (
            tracks = ''
            or (tracks = 'state' and stated.root_id is null and explained_payment.root_id is null)
        )
),
-- One row per object; a status that is known to lag tells more than an event that cannot be looked up.
without_money as (
    select provider, account, mode, object_id, cause, expected_state, found_state,
        row_number() over (partition by provider, account, mode, object_id order by cause, found_rank) as place
    from (
        select provider, account, mode, object_id, '' as cause, expected_state, found_state, found_rank
        from lagging_status
        where delivery = 'missed'
        union all
        select provider, account, mode, object_id, 'consequence_unknown', '', '', 0
        from other_event
    ) as events
)
select
    'missed_event' as kind, case when delivery.outcome = 'missed' then '' else 'not_subscribed' end as cause,
    provider, account, mode, object_id, kind as effect, currency,
    expected_minor, found_minor, '' as expected_state, '' as found_state
from unit
join delivery using (provider, account, mode, root_id, object_id, kind)
where unit.verdict = 'missing' and delivery.outcome in ('missed', 'not_subscribed')
union all
select
    'missed_event', cause, provider, account, mode, object_id, '', '',
    cast(null as bigint), cast(null as bigint), expected_state, found_state
from without_money
where place = 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
