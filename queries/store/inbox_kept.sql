-- How many events before $1 keep their bodies because they have not ended well. Always one row.
select count(*) as events
from inbox_event
where received_at_us < $1 and body is not null and status in ('received', 'parked', 'dead')
