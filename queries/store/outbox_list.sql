-- Messages without their bodies, last written first: $1 a status or empty for all, $2 how many. Relies on the index
-- outbox_message_created. Zero rows: there are none.
select idempotency_key, topic, created_at_us, sent_at_us, dead_at_us, next_attempt_at_us, suppressed_reason, attempts,
    last_error, status
from (
    select idempotency_key, topic, created_at_us, sent_at_us, dead_at_us, next_attempt_at_us, suppressed_reason,
        attempts, last_error,
        case
            when suppressed_reason <> '' then 'suppressed'
            when sent_at_us is not null then 'sent'
            when dead_at_us is not null then 'dead'
            else 'waiting'
        end as status
    from outbox_message
) as message
where $1 = '' or status = $1
order by created_at_us desc, idempotency_key
limit $2
