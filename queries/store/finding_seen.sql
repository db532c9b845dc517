-- Records findings of a run, under the write lock, under which its standing was judged. Primary key: finding_id; the day of
-- the first sight never changes. Zero rows never happen.
insert into finding (
    finding_id, kind, provider, account, mode, object_id, occurred_at_us, first_seen_us, last_seen_us,
    status, run_id, opening, cause, severity, root_id, currency, found_currency, expected_minor, found_minor,
    difference_minor, expected_state, found_state, event_ids, effect_ids, correction, note, amounts
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)
on conflict (finding_id) do update
set last_seen_us = excluded.last_seen_us, cleared_us = null, cleared_run = '', status = excluded.status,
    run_id = excluded.run_id, opening = excluded.opening, cause = excluded.cause, severity = excluded.severity,
    root_id = excluded.root_id, currency = excluded.currency, found_currency = excluded.found_currency,
    expected_minor = excluded.expected_minor, found_minor = excluded.found_minor,
    difference_minor = excluded.difference_minor, expected_state = excluded.expected_state,
    found_state = excluded.found_state, event_ids = excluded.event_ids, effect_ids = excluded.effect_ids,
    correction = excluded.correction, note = excluded.note, amounts = excluded.amounts
returning finding_id
