-- Stored events with these ids. Key: provider_record's primary key. Zero rows: never listed.
select record_id, created_us, body
from provider_record
where provider = $1 and account = $2 and mode = $3 and stream = 'events' and record_id in (values ($4))
order by record_id
