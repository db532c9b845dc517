-- Runs that began at or after an instant and never ended, newest first. Zero rows: every one ended.
-- All columns: a store of an earlier version, only looked at, has no `error` yet.
select *
from run
where outcome = 'started' and started_at_us >= $1
order by started_at_us desc, run_id desc
