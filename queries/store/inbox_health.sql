-- recon's own inbox by scope and status: events, deliveries beyond the first, and what waits. Zero rows:
-- the inbox is empty.
select provider, account, mode, status,
    count(*) as events,
    cast(sum(deliveries - 1) as bigint) as duplicates,
    min(received_at_us) as oldest_us,
    cast(sum(case when received_at_us < $1 then 1 else 0 end) as bigint) as above_age
from inbox_event
group by provider, account, mode, status
order by provider, account, mode, status
