-- One run. Primary key: run_id. Zero rows: this store never ran it.
-- All columns: a store of an earlier version, only looked at, has no `error` yet.
select *
from run
where run_id = $1
