-- One page of a stream's records that were created inside the window, in (creation, id) order, after
-- the record that the last page ended with. Index: provider_record_created. Zero rows: no more.
select record_id, created_us, body
from provider_record
where provider = $1 and account = $2 and mode = $3 and stream = $4
  and created_us >= $5 and created_us < $6
  and (created_us, record_id) > ($7, $8)
order by created_us, record_id
limit $9
