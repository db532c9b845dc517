-- Notes what became of a message. Primary key: idempotency_key. A message that was sent stays sent. $1 when it was
-- sent, $2 when it was given up, $3 why it failed. Zero rows: another sender got it through.
update outbox_message
set sent_at_us = $1, dead_at_us = $2, last_error = $3
where idempotency_key = $4 and sent_at_us is null
returning idempotency_key
