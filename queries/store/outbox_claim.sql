-- Claims due messages and books their next attempt in the same commit, so that a failure, a crash and a kill take
-- one path. Relies on the write lock and on the index outbox_message_due. $1 to $5 are the next times after 1, 2, 3,
-- 4 and more attempts, $6 now, $7 how many. Zero rows: nothing is due.
update outbox_message
set next_attempt_at_us = case
        when attempts = 0 then cast($1 as bigint)
        when attempts = 1 then cast($2 as bigint)
        when attempts = 2 then cast($3 as bigint)
        when attempts = 3 then cast($4 as bigint)
        else cast($5 as bigint)
    end,
    attempts = attempts + 1
where idempotency_key in (
    select idempotency_key
    from outbox_message
    where sent_at_us is null and dead_at_us is null and suppressed_reason = ''
      and next_attempt_at_us <= $6
    order by next_attempt_at_us, created_at_us
    limit $7
)
  -- Whoever waited for another worker's claim looks again, and leaves what that one took.
  and next_attempt_at_us <= $6
returning idempotency_key, body, attempts
