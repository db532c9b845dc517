-- Which of the named events the inbox holds, in every scope. Primary key: (provider, account, mode,
-- event_id). Zero rows: none of them was ever received.
select provider, account, mode, event_id
from inbox_event
where (provider, account, mode, event_id) in (values ($1, $2, $3, $4))
