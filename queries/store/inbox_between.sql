-- Events that have ended and were received from $1 up to $2, oldest first. Index: inbox_event_received. Zero rows:
-- there are none.
select provider, account, mode, event_id
from inbox_event
where received_at_us >= $1 and received_at_us < $2
  and status in ('applied', 'superseded', 'ignored', 'dead')
order by received_at_us, event_id
