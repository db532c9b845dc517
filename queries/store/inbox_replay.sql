-- Makes events that have ended due once more. Their reason says why: what they do then sends no messages. So dead letters,
-- which were never applied, are not among them, nor what has no bytes any more. Primary key: (provider, account, mode,
-- event_id). $1 now, $2 the reason. Zero rows: none has ended so.
update inbox_event
set status = 'received', attempts = 0, next_attempt_at_us = $1, completed_at_us = null, parked_for = '',
    reason = $2, tried_since_us = 0, dead_told_us = 0
where (provider, account, mode, event_id) in (values ($3, $4, $5, $6))
  and status in ('applied', 'superseded', 'ignored') and body is not null
returning provider, account, mode, event_id
