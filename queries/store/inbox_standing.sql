-- What stands in the inbox, whenever it was received: events that wait or gave up, by scope and status. $1: received
-- before it counts as old. Relies on the indexes inbox_event_due and inbox_event_dead. Zero rows: nothing stands there.
select provider, account, mode, status,
    count(*) as events,
    min(received_at_us) as oldest_us,
    cast(sum(case when received_at_us < $1 then 1 else 0 end) as bigint) as above_age
from inbox_event
where status in ('received', 'parked')
group by provider, account, mode, status
union all
select provider, account, mode, status,
    count(*) as events,
    min(received_at_us) as oldest_us,
    cast(0 as bigint) as above_age
from inbox_event
where status = 'dead'
group by provider, account, mode, status
order by 1, 2, 3, 4
