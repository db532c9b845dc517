-- The latest runs, newest first. Zero rows: none was ever started.
-- All columns: a store of an earlier version, only looked at, has no `error` yet.
select *
from run
order by started_at_us desc, run_id desc
limit $1
