-- Notes what an event waits for that is not its own fault, and gives the attempt back that its claim booked. It is due
-- again after a quarter of the time for which it has been tried: no sooner than $3, no later than $5, else five times now
-- ($6) less its first attempt, by four. $2 and $4 are first attempts of which the quarter reaches these bounds. All in µs. Without
-- a first attempt, a person has just had it tried again.
-- Primary key: (provider, account, mode, event_id). Zero rows: it has ended meanwhile.
-- The status is asked for by what it is not: else the index of what is due is read whole instead of the key.
update inbox_event
set last_error = $1,
    attempts = case when status = 'parked' or attempts = 0 then attempts else attempts - 1 end,
    next_attempt_at_us = case
        when tried_since_us >= $2 or tried_since_us = 0 then cast($3 as bigint)
        when tried_since_us <= $4 then cast($5 as bigint)
        else (cast($6 as bigint) - tried_since_us) / 4
    end
where (provider, account, mode, event_id) in (values ($7, $8, $9, $10))
  and status not in ('applied', 'superseded', 'ignored', 'dead')
returning event_id
