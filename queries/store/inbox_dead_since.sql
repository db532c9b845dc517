-- Dead letters since $1: how many, and why the first gave up. Relies on the index inbox_event_dead. Zero rows: none.
select count(*) over () as events, last_error
from inbox_event
where status = 'dead' and completed_at_us > $1
order by completed_at_us, received_at_us, event_id
limit 1
