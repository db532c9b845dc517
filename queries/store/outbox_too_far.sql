-- Makes messages due that are said to be due later ($1, Unix µs) than any wait ends: they were put off under a clock that
-- was ahead. Index: outbox_message_due. Zero rows: the usual case.
update outbox_message
set next_attempt_at_us = 0
where sent_at_us is null and dead_at_us is null and suppressed_reason = ''
  and next_attempt_at_us > $1
returning idempotency_key
