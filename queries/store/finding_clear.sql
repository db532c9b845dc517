-- Clears findings of one account and window that the run ($3) looked for and no longer found; `occurred_at_us`
-- is what of them lay in the window in which they were first found. Index: none, the table is small beside the
-- facts. Zero rows: every one that was open still is.
update finding
set status = 'cleared', cleared_us = $1
where status in ('new', 'open', 'reopened', 'accepted')
  and last_seen_us <= $2 and run_id <> $3
  and provider = $4 and account = $5 and mode = $6
  and occurred_at_us >= $7 and occurred_at_us < $8
returning finding_id
