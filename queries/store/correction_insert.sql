-- Appends outcomes to the chain. Relies on the primary key sequence, so that two writers cannot both
-- continue the same end, and on (correction_id, outcome). Insert only; zero rows never happen.
insert into correction (
    sequence, correction_id, plan_run_id, finding_id, action, effect_key, outcome, applied_at_us,
    previous_hash, hash
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
returning sequence
