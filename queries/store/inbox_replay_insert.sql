-- Puts an event into the inbox that the provider holds and that was never delivered: its own bytes
-- and time, no delivery. Primary key: (provider, account, mode, event_id). Zero rows: it has arrived
-- by now, and stays as it arrived.
insert into inbox_event (
    provider, account, mode, event_id, event_type, body, body_sha256, received_at_us,
    last_delivery_at_us, deliveries, status, reason
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11)
on conflict do nothing
returning event_id
