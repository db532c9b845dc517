-- The bytes of one event as received. Primary key: (provider, account, mode, event_id). Null: dropped after their
-- retention. Zero rows: it was never received.
select body
from inbox_event
where provider = $1 and account = $2 and mode = $3 and event_id = $4
