-- What waits in the inbox, by status: events, those received before an instant ($1), and the oldest. Reads the
-- index of due events alone. Zero rows: nothing waits.
select status,
    count(*) as events,
    cast(sum(case when received_at_us < $1 then 1 else 0 end) as bigint) as above_age,
    min(received_at_us) as oldest_us
from inbox_event
where status in ('received', 'parked')
group by status
order by status
