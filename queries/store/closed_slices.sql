-- Ranges of a stream that any run has read to their end. Key: slice's primary key. Zero rows: nothing
-- was ever read.
select from_us, until_us
from slice
where provider = $1 and account = $2 and mode = $3 and stream = $4 and status = 'closed'
order by from_us, until_us
