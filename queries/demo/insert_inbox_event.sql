-- The shop of the demonstration stores a received event. Relies on the primary key (provider, account,
-- mode, event_id); an event is inserted once, with its deliveries counted beforehand. Zero rows: never.
-- The row of values is repeated for bulk loading.
insert into inbox_event (provider, account, mode, event_id, event_type, body, body_sha256, received_at_us, last_delivery_at_us, deliveries, status)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
returning 1
