-- Ends events, in the transaction of what they did. Primary key: (provider, account, mode, event_id); an event
-- that a person or another worker ended meanwhile stays as it is. $1 status, $2 when, $3 error, $4 what it waits for, $5
-- when it is due again. Zero rows: all had ended.
-- The status is asked for by what it is not: else the index of what is due is read whole instead of the key.
update inbox_event
set status = $1, completed_at_us = $2, last_error = $3, parked_for = $4, next_attempt_at_us = $5
where (provider, account, mode, event_id) in (values ($6, $7, $8, $9))
  and status not in ('applied', 'superseded', 'ignored', 'dead')
returning event_id
