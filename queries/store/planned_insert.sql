-- Keeps what a run planned. Primary key: correction_id; a row that is missing from the answer was
-- kept before, by the same run.
insert into planned_correction (
    correction_id, run_id, finding_id, provider, account, mode, action, effect_key, object_id, root_id,
    kind, currency, amount_minor, target_state, reason, allowed_by, event_ids, effect_ids, occurred_at_us
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
on conflict do nothing
returning correction_id
