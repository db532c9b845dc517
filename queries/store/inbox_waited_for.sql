-- What parked events wait for, at most $1 of them. Relies on the index inbox_event_parked. Zero rows: none is parked.
select provider, account, mode, parked_for
from inbox_event
where status = 'parked'
limit $1
