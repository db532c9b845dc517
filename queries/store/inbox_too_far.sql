-- Makes events due that are said to be due later ($1, Unix µs) than any wait ends: they were put off under a clock that
-- was ahead. Index: inbox_event_due. Zero rows: the usual case.
update inbox_event
set next_attempt_at_us = 0
where status in ('received', 'parked')
  and next_attempt_at_us > $1
returning event_id
