-- What earlier runs know of findings. Primary key: finding_id. Zero rows: all of them are new.
select finding_id, first_seen_us, status, run_id, opening
from finding
where finding_id in (values ($1))
