-- Ends events that are not to be applied. Primary key: (provider, account, mode, event_id). $1 now. Zero rows: all
-- have ended otherwise.
update inbox_event
set status = 'ignored', completed_at_us = $1, last_error = 'discarded', parked_for = '', next_attempt_at_us = 0
where (provider, account, mode, event_id) in (values ($2, $3, $4, $5))
  and status in ('received', 'parked', 'dead')
returning provider, account, mode, event_id
