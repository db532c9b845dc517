-- Of these events, those that have not ended. Primary key: (provider, account, mode, event_id). Relies on the write
-- lock. Zero rows: all have ended.
select provider, account, mode, event_id
from inbox_event
where status in ('received', 'parked')
  and (provider, account, mode, event_id) in (values ($1, $2, $3, $4))
