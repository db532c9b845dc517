-- The demonstration of recovery: the messages, in the order of booking. Zero rows: nothing was booked.
select idempotency_key, attempts, case when sent_at_us is null then 0 else 1 end as is_sent
from outbox_message
order by created_at_us, idempotency_key
