-- Runs that began at or after an instant and never ended, newest first. Zero rows: every one ended.
select run_id, started_at_us, finished_at_us, from_us, until_us, time_zone, basis, outcome, findings, report_dir
from run
where outcome = 'started' and started_at_us >= $1
order by started_at_us desc, run_id desc
