-- Records with these ids in any stream but events, created outside of a window (an empty window leaves
-- out none). Index: provider_record_id. Zero rows: never read, or inside the window.
select stream, record_id, created_us, fetched_at_us, body
from provider_record
where provider = $1 and account = $2 and mode = $3 and stream <> 'events'
  and (created_us < $4 or created_us >= $5)
  and record_id in (values ($6))
order by stream, record_id
