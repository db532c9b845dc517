-- When these payments were last asked for whole. Key: payment_asked's primary key. Zero rows: never, or the last
-- time that one was doubted it could not be asked for.
select root_id, asked_at_us
from payment_asked
where provider = $1 and account = $2 and mode = $3 and is_whole = 1 and root_id in (values ($4))
