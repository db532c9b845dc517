-- Of these events, those that have not ended, with the attempts that are counted. Primary key: (provider, account, mode, event_id). Relies on the write
-- lock. Zero rows: all have ended.
-- The status is asked for by what it is not: else the index of what is due is read whole instead of the key.
select provider, account, mode, event_id, attempts
from inbox_event
where status not in ('applied', 'superseded', 'ignored', 'dead')
  and (provider, account, mode, event_id) in (values ($1, $2, $3, $4))
