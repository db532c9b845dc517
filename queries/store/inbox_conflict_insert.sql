-- Keeps other bytes that arrived under an event id. Primary key: (provider, account, mode, event_id,
-- body_sha256); bytes that are known are counted. Never zero rows.
insert into inbox_conflict (provider, account, mode, event_id, body_sha256, body, received_at_us, deliveries)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (provider, account, mode, event_id, body_sha256) do update
set deliveries = inbox_conflict.deliveries + excluded.deliveries
returning event_id
