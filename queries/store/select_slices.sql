-- The slices of one run and stream, newest first. Zero rows: none was opened.
select from_us, until_us, status, pages, records, cause, closed_at_us
from slice
where provider = $1 and account = $2 and mode = $3 and stream = $4 and run_id = $5
order by from_us desc, until_us desc
