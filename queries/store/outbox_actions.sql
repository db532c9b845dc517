-- What persons did to one message, oldest first. Zero rows: nothing.
select action, reason, actor, at_us
from outbox_action
where idempotency_key = $1
order by at_us, action
