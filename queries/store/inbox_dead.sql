-- How many events are dead letters. Reads the index of dead letters alone. Never zero rows.
select count(*) as events
from inbox_event
where status = 'dead'
