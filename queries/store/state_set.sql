-- Writes a status that was fetched from the provider just now. Primary key: (provider, account, mode,
-- object_id). The row must still be as it was read ($10: its last change); zero rows: it moved.
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
where object_state.updated_at_us = $10
returning object_id
