-- Takes all dead letters that nobody was told of under the mark $1, a number below 0. Relies on the index
-- inbox_event_dead_untold; one process tells at a time (notification_claim). Zero rows: there are none.
update inbox_event
set dead_told_us = $1
where status = 'dead' and dead_told_us <= 0
returning completed_at_us, received_at_us, event_id, last_error
