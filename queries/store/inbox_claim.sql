-- Claims due events and books their next attempt in the same commit, so that an error, a crash and a kill
-- take one path. Relies on the write lock; `postgres/inbox_claim.sql` is its twin for concurrent claims. The
-- delay is by attempts made: $1 to $5 are the next times after 1, 2, 3, 4 and more attempts, $6 is now, $7 how many. A
-- parked event does not use up attempts; it looks again after the third. Zero rows: nothing is due.
update inbox_event
set next_attempt_at_us = case
        when status = 'parked' then cast($3 as bigint)
        when attempts = 0 then cast($1 as bigint)
        when attempts = 1 then cast($2 as bigint)
        when attempts = 2 then cast($3 as bigint)
        when attempts = 3 then cast($4 as bigint)
        else cast($5 as bigint)
    end,
    attempts = case when status = 'parked' then attempts else attempts + 1 end,
    tried_since_us = case when tried_since_us = 0 then $6 else tried_since_us end
where (provider, account, mode, event_id) in (
    select provider, account, mode, event_id
    from inbox_event
    where status in ('received', 'parked')
      and next_attempt_at_us <= $6
    order by next_attempt_at_us, received_at_us
    limit $7
)
returning provider, account, mode, event_id, event_type, body, received_at_us, attempts, status, reason,
    tried_since_us
