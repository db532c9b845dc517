-- Deliveries beyond the first of each event, in all. Relies on the index inbox_event_repeated. Never zero rows.
select cast(coalesce(sum(deliveries - 1), 0) as bigint) as duplicates
from inbox_event
where deliveries > 1
