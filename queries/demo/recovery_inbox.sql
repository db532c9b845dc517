-- The demonstration of recovery: the inbox, in the order of receipt. Zero rows: nothing was committed.
select event_id, event_type, status, deliveries, attempts
from inbox_event
order by received_at_us, event_id
