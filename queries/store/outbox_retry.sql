-- Makes messages due that were given up, with new attempts and the same key. Primary key: idempotency_key. $1 now. Zero
-- rows: none of them was given up.
update outbox_message
set attempts = 0, next_attempt_at_us = $1, dead_at_us = null
where idempotency_key in (values ($2))
  and dead_at_us is not null and sent_at_us is null and suppressed_reason = ''
returning idempotency_key
