-- Writes statuses under the write lock, under which they were judged. Primary key: (provider, account, mode,
-- object_id). A row that was changed later than what is written stays: it is missing from the answer. One
-- statement never has a key twice. Zero rows: all were changed later.
insert into object_state (
    provider, account, mode, object_id, status, refunded_minor, provider_time_us, updated_at_us, changed_by
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (provider, account, mode, object_id) do update
set status = excluded.status,
    refunded_minor = coalesce(excluded.refunded_minor, object_state.refunded_minor),
    provider_time_us = excluded.provider_time_us,
    updated_at_us = excluded.updated_at_us,
    changed_by = excluded.changed_by
where object_state.updated_at_us <= excluded.updated_at_us
returning provider, account, mode, object_id
