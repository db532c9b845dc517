-- Records how a run ended. Primary key: run_id. Zero rows: it never began.
update run set finished_at_us = $1, outcome = $2, findings = $3 where run_id = $4
returning run_id
