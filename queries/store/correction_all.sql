-- The whole chain, in order. Zero rows: nothing was ever corrected.
select sequence, correction_id, plan_run_id, finding_id, action, effect_key, outcome, applied_at_us,
       previous_hash, hash
from correction
order by sequence
