-- Records that a run could not do its work, and why. Primary key: run_id. Zero rows: it has ended already, or
-- never began.
update run set finished_at_us = $1, outcome = 'incomplete', error = $2
where run_id = $3 and outcome = 'started'
returning run_id
