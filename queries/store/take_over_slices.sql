-- Hands the slices of an unfinished run of the same window to the run that resumes it.
-- Relies on the new run having none. Zero rows: the earlier run had opened none.
update slice set run_id = $1
where run_id = $2
returning from_us
