-- Findings on an object, or on a payment. Indexes: finding_object, finding_root. Zero rows: no run has found anything on it.
select finding_id, kind, provider, account, mode, object_id, occurred_at_us, first_seen_us, last_seen_us, cleared_us,
       status, run_id, opening, cause, severity, root_id, currency, found_currency, expected_minor, found_minor,
       difference_minor, expected_state, found_state, event_ids, effect_ids, correction, note, amounts, cleared_run
from finding
where object_id = $1 or root_id = $1
order by first_seen_us, finding_id
