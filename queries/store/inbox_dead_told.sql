-- Those dead letters that were taken under the mark $2 were told at $1; one that was tried again meanwhile has lost its
-- mark. Relies on the index inbox_event_dead_untold. Zero rows: all were tried again.
update inbox_event
set dead_told_us = $1
where status = 'dead' and dead_told_us <= 0 and dead_told_us = $2
returning event_id
