-- What is kept of one event as received: bytes, and the headers and URL that its proof needs. Primary key: (provider,
-- account, mode, event_id). Null: dropped after their retention, or never there. Zero rows: it was never received.
select body, headers, url
from inbox_event
where provider = $1 and account = $2 and mode = $3 and event_id = $4
