-- What persons did to one event, oldest first. Zero rows: nothing.
select action, reason, actor, at_us
from inbox_action
where provider = $1 and account = $2 and mode = $3 and event_id = $4
order by at_us, action
