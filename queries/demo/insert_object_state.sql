-- The shop of the demonstration writes a payment's status. Relies on the primary key (provider,
-- account, mode, object_id). Zero rows: never. The row of values is repeated for bulk loading.
insert into object_state (provider, account, mode, object_id, status, provider_time_us, updated_at_us)
values ($1, $2, $3, $4, $5, $6, $7)
returning 1
