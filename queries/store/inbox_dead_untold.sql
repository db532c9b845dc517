-- Whether there is a dead letter that nobody was told of. Relies on the index inbox_event_dead_untold. Zero rows: none.
select event_id
from inbox_event
where status = 'dead' and dead_told_us <= 0
limit 1
