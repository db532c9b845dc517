-- Other bytes that came under one event's id, by the beginning of their hash, $5. Primary key: (provider, account, mode,
-- event_id, body_sha256). Empty bytes: dropped after their retention. Two rows: it is the beginning of several. Zero rows:
-- of none.
select body_sha256, body
from inbox_conflict
where provider = $1 and account = $2 and mode = $3 and event_id = $4
  and substr(body_sha256, 1, length(cast($5 as text))) = cast($6 as text)
order by body_sha256
limit 2
