-- Makes events due that gave up or wait, with new attempts. Primary key: (provider, account, mode, event_id). $1 now.
-- Zero rows: all have come to another end, or have no bytes any more.
update inbox_event
set status = 'received', attempts = 0, next_attempt_at_us = $1, completed_at_us = null, parked_for = '',
    tried_since_us = 0, dead_told_us = 0
where (provider, account, mode, event_id) in (values ($2, $3, $4, $5))
  and status in ('received', 'parked', 'dead') and body is not null
returning provider, account, mode, event_id
