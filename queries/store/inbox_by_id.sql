-- Events of the inbox by their id alone: one for each scope that has it. Zero rows: it was never received.
select provider, account, mode, event_id, event_type, status, received_at_us, last_delivery_at_us, deliveries,
       attempts, next_attempt_at_us, completed_at_us, last_error, reason, parked_for, body_sha256,
       cast(case when body is null then 0 else 1 end as bigint) as has_body
from inbox_event
where event_id = $1
order by provider, account, mode
