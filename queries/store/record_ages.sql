-- When records were created and last read, in any stream but events. Index: provider_record_id. Zero
-- rows: never read.
select record_id, created_us, fetched_at_us
from provider_record
where provider = $1 and account = $2 and mode = $3 and stream <> 'events' and record_id in (values ($4))
