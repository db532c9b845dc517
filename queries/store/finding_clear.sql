-- Clears findings of one account and window that the run ($4) looked for and no longer found; `occurred_at_us`
-- is what of them lay in the window in which they were first found. Index: none, the table is small beside the
-- facts. Zero rows: every one that was open still is.
update finding
set status = 'cleared', cleared_us = $1, cleared_run = $2
where status in ('new', 'open', 'reopened', 'accepted')
  and last_seen_us <= $3 and run_id <> $4
  and provider = $5 and account = $6 and mode = $7
  and occurred_at_us >= $8 and occurred_at_us < $9
returning finding_id, opening
