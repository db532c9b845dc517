-- Findings of a kind, severity and account ('' for any kind and severity; $3 = 1 for any account), first seen before $5 and,
-- unless $6 = 1, not cleared; oldest first. Index: none, the table is small beside the facts. Zero rows: none is so.
select finding_id, kind, provider, account, mode, object_id, occurred_at_us, first_seen_us, last_seen_us, cleared_us,
       status, run_id, opening, cause, severity, root_id, currency, found_currency, expected_minor, found_minor,
       difference_minor, expected_state, found_state, event_ids, effect_ids, correction, note, amounts, cleared_run
from finding
where ($1 = '' or kind = $1) and ($2 = '' or severity = $2) and ($3 = 1 or account = $4)
  and first_seen_us <= $5 and ($6 = 1 or status <> 'cleared')
order by first_seen_us, provider, account, object_id, kind, finding_id
