-- Records how a run ended. Primary key: run_id. Zero rows: it never began.
update run set finished_at_us = $1, outcome = $2, findings = $3, error = $4 where run_id = $5
returning run_id
