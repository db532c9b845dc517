-- Notes why an attempt failed; the claim has booked the next one. Primary key: (provider, account, mode,
-- event_id). Zero rows: it has ended meanwhile.
update inbox_event
set last_error = $1
where (provider, account, mode, event_id) in (values ($2, $3, $4, $5))
  and status in ('received', 'parked')
returning event_id
