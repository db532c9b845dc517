-- Records held of one stream in a half-open range of creation times. Always one row.
select count(*) as records
from provider_record
where provider = $1 and account = $2 and mode = $3 and stream = $4 and created_us >= $5 and created_us < $6
