-- How often other bytes came under one event's id. Always one row.
select count(*) as bodies
from inbox_conflict
where provider = $1 and account = $2 and mode = $3 and event_id = $4
