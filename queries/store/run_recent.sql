-- The latest runs, newest first. Zero rows: none was ever started.
select run_id, started_at_us, finished_at_us, from_us, until_us, time_zone, basis, outcome, findings, report_dir
from run
order by started_at_us desc, run_id desc
limit $1
