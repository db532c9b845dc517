-- One run. Primary key: run_id. Zero rows: this store never ran it.
select run_id, started_at_us, finished_at_us, from_us, until_us, time_zone, basis, outcome, findings, report_dir
from run
where run_id = $1
