-- Makes parked events due that wait for an effect, in the transaction in which it lands. Relies on the index
-- inbox_event_parked. Zero rows: nobody waits.
update inbox_event
set next_attempt_at_us = $1
where status = 'parked'
  and (provider, account, mode, parked_for) in (values ($2, $3, $4, $5))
returning event_id
