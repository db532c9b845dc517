-- Records findings of a run. Primary key: finding_id; the day of the first sight never changes.
insert into finding (
    finding_id, kind, provider, account, mode, object_id, occurred_at_us, first_seen_us, last_seen_us,
    status, run_id
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict (finding_id) do update
set last_seen_us = excluded.last_seen_us, cleared_us = null,
    status = case when finding.status = 'accepted' then finding.status else excluded.status end,
    run_id = excluded.run_id
returning finding_id
