-- The run that last saw everything, whatever it found. Zero rows: none ever did.
select run_id, started_at_us, finished_at_us, from_us, until_us, time_zone, basis, outcome, findings, report_dir
from run
where outcome in ('clean', 'findings') and finished_at_us is not null
order by finished_at_us desc, run_id desc
limit 1
