-- What runs planned for a finding, oldest run first. Index: planned_correction_finding. Zero rows: nothing.
select planned.correction_id, planned.run_id, planned.action, planned.effect_key, planned.currency,
       planned.amount_minor, planned.target_state, planned.allowed_by, run.started_at_us
from planned_correction planned
join run on run.run_id = planned.run_id
where planned.finding_id = $1
order by run.started_at_us, planned.run_id, planned.correction_id
