-- Makes events due that are said to be due later ($2) than any wait ends: they were put off under a clock that was
-- ahead. $1 is now; both in Unix µs. Index: inbox_event_due. Zero rows: the usual case.
update inbox_event
set next_attempt_at_us = $1
where status in ('received', 'parked')
  and next_attempt_at_us > $2
returning event_id
