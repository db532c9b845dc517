-- Events that have ended and were received from $1 up to $2, oldest first, and what says whether they can be replayed.
-- Index: inbox_event_received. Zero rows: there are none.
select provider, account, mode, event_id, status, last_error,
       cast(case when body is null then 0 else 1 end as bigint) as has_body
from inbox_event
where received_at_us >= $1 and received_at_us < $2
  and status in ('applied', 'superseded', 'ignored', 'dead')
order by received_at_us, event_id
