-- Findings whose id begins so ($1 <= id < $2). Primary key: finding_id. Zero rows: no run has seen one.
select finding_id, kind, provider, account, mode, object_id, occurred_at_us, first_seen_us, last_seen_us, cleared_us,
       status, run_id, opening, cause, severity, root_id, currency, found_currency, expected_minor, found_minor,
       difference_minor, expected_state, found_state, event_ids, effect_ids, correction, note, amounts, cleared_run
from finding
where finding_id >= $1 and finding_id < $2
order by finding_id
limit 10
