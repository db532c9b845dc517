-- Counts deliveries that were refused before anything was stored. Primary key: (provider, reason, day_us): what
-- is counted already is added to. Never zero rows.
insert into refused_delivery (provider, reason, day_us, deliveries)
values ($1, $2, $3, $4)
on conflict (provider, reason, day_us) do update
set deliveries = refused_delivery.deliveries + excluded.deliveries
returning deliveries
