-- The run that last saw everything, whatever it found. Zero rows: none ever did.
-- All columns: a store of an earlier version, only looked at, has no `error` yet.
select *
from run
where outcome in ('clean', 'findings') and finished_at_us is not null
order by finished_at_us desc, run_id desc
limit 1
