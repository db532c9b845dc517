-- Other bytes that came under one event's id, at most $5 of them, with how many there are in all. Primary key: (provider,
-- account, mode, event_id, body_sha256). Zero rows: there are none.
select body_sha256, deliveries, received_at_us,
       cast(length(body) as bigint) as bytes,
       count(*) over () as bodies
from inbox_conflict
where provider = $1 and account = $2 and mode = $3 and event_id = $4
order by received_at_us, body_sha256
limit $5
