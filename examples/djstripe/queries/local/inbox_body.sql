-- The body of one received event.
-- Proposed by `recon init --from` for dj-stripe (djstripe_event, djstripe_webhookeventtrigger), and yours to
-- change.
-- What it takes for granted stands in inbox.sql.
select
    coalesce(t.event_id, (cast(case when t.valid then t.body end as json) ->> 'id')) as event_id,
    t.body as body
from djstripe_webhookeventtrigger t
where t.valid
    and (t.event_id = :event_id or (t.event_id is null and (cast(case when t.valid then t.body end as json) ->> 'id') = :event_id))
    and :provider = 'stripe'
order by t.id
