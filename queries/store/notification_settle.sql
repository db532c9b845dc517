-- Ends the telling of $3 that was taken on until $4: told at $1, or, where that is null, due again. $2 is the same.
-- Primary key: kind. Zero rows: it took too long, and somebody else is at it.
update notification
set told_at_us = case when cast($1 as bigint) is null then told_at_us else cast($2 as bigint) end, held_until_us = 0
where kind = $3 and held_until_us = $4
returning kind
