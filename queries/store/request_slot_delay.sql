-- Nobody may take a slot of these limits before $5: the provider refused one that was used. Primary key. Zero rows: none was
-- ever taken, or they begin later anyway.
update request_slot
set next_at_us = $5
where provider = $1 and account = $2 and mode = $3 and endpoint = $4 and next_at_us < $5
returning endpoint
