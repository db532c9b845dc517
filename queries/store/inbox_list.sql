-- Events of the inbox, last received first: $1 a status or empty for all, $2 how many. Zero rows: there are none.
select provider, account, mode, event_id, event_type, status, received_at_us, last_delivery_at_us, deliveries,
       attempts, next_attempt_at_us, completed_at_us, last_error, reason, parked_for, body_sha256,
       cast(case when body is null then 0 else 1 end as bigint) as has_body
from inbox_event
where $1 = '' or status = $1
order by received_at_us desc, event_id
limit $2
