-- What was first received from $1 to before $2: events by scope and status, and their deliveries beyond the first.
-- Relies on the index inbox_event_received. Zero rows: nothing was received then.
select provider, account, mode, status,
    count(*) as events,
    cast(sum(case when deliveries > 1 then deliveries - 1 else 0 end) as bigint) as duplicates
from inbox_event
where received_at_us >= $1 and received_at_us < $2
group by provider, account, mode, status
order by provider, account, mode, status
