-- Notes why an attempt failed; the claim has booked the next one. Primary key: (provider, account, mode,
-- event_id). Zero rows: it has ended meanwhile.
-- The status is asked for by what it is not: else the index of what is due is read whole instead of the key.
update inbox_event
set last_error = $1
where (provider, account, mode, event_id) in (values ($2, $3, $4, $5))
  and status not in ('applied', 'superseded', 'ignored', 'dead')
returning event_id
