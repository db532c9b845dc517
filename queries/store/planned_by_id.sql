-- Planned corrections by id. Primary key: correction_id. Zero rows: no run of this store planned them.
select correction_id, run_id, finding_id, provider, account, mode, action, effect_key, object_id, root_id,
       kind, currency, amount_minor, target_state, reason, allowed_by, event_ids, effect_ids, occurred_at_us
from planned_correction
where correction_id in (values ($1))
