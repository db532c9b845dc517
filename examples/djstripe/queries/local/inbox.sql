-- What was received in the window.
-- Proposed by `recon init --from` for dj-stripe (djstripe_event, djstripe_webhookeventtrigger), and yours to
-- change.
-- Taken for granted:
--  * a row of djstripe_event was received and processed; a genuine delivery without one failed. An event that
--    djstripe_sync_models fetched counts as received
--  * the time of receipt is when dj-stripe stored the event, not when Stripe made it
select
    'stripe' as provider,
    coalesce((e.stripe_data ->> 'account'), '') as account,
    case when not e.livemode then 'test' else 'live' end as mode,
    e.id as event_id,
    e.type as event_type,
    cast(extract(epoch from e.djstripe_created) * 1000000 as bigint) as received_at_us,
    'processed' as status
from djstripe_event e
where e.djstripe_created >= to_timestamp(:from_us / 1000000.0)
    and e.djstripe_created < to_timestamp(:until_us / 1000000.0)
union all
select
    'stripe',
    coalesce((cast(case when t.valid then t.body end as json) ->> 'account'), ''),
    case when (cast(case when t.valid then t.body end as json) ->> 'livemode') = 'true' then 'live' else 'test' end,
    (cast(case when t.valid then t.body end as json) ->> 'id'),
    (cast(case when t.valid then t.body end as json) ->> 'type'),
    cast(extract(epoch from t.created) * 1000000 as bigint) as received_at_us,
    'failed'
from djstripe_webhookeventtrigger t
where t.created >= to_timestamp(:from_us / 1000000.0)
    and t.created < to_timestamp(:until_us / 1000000.0)
    and t.valid
    and not t.processed
    and t.event_id is null
