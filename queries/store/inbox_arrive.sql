-- Files deliveries. Primary key: (provider, account, mode, event_id): a repeated delivery is counted on the
-- row that is there, whose bytes stay. The answer tells which: a row with another hash holds other bytes, one
-- with another receipt time was there before. One statement never has a key twice. Never zero rows.
insert into inbox_event (
    provider, account, mode, event_id, event_type, body, body_sha256, received_at_us, last_delivery_at_us,
    deliveries, status, headers, url, secret_slot
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'received', $11, $12, $13)
on conflict (provider, account, mode, event_id) do update
set deliveries = inbox_event.deliveries + excluded.deliveries,
    last_delivery_at_us = case
        when excluded.last_delivery_at_us > inbox_event.last_delivery_at_us then excluded.last_delivery_at_us
        else inbox_event.last_delivery_at_us
    end
returning provider, account, mode, event_id, body_sha256, received_at_us, deliveries
