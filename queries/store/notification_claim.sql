-- Takes the telling of $1 on, until $2 should the teller vanish, unless it was told after $3 or somebody else is at it
-- after $5. Beyond $4 and $6 lie times of a clock that was ahead: they count for nothing. Primary key: kind, so one of
-- several processes gets it. Zero rows: it is not to be told now.
insert into notification (kind, told_at_us, held_until_us)
values ($1, 0, $2)
on conflict (kind) do update
set held_until_us = excluded.held_until_us
where (notification.told_at_us <= $3 or notification.told_at_us > $4)
    and (notification.held_until_us <= $5 or notification.held_until_us > $6)
returning kind
