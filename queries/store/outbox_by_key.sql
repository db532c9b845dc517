-- One message without its body. Primary key: idempotency_key. Zero rows: there is none with that key.
select idempotency_key, topic, created_at_us, sent_at_us, dead_at_us, next_attempt_at_us, suppressed_reason, attempts,
    last_error,
    case
        when suppressed_reason <> '' then 'suppressed'
        when sent_at_us is not null then 'sent'
        when dead_at_us is not null then 'dead'
        else 'waiting'
    end as status
from outbox_message
where idempotency_key = $1
