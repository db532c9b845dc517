-- Deliveries of other bytes under a known event's id, by scope: of bytes that first came from $1 to before $2, and of
-- events that were first received then, whose count of deliveries has them too. Primary key of the join: (provider,
-- account, mode, event_id). Zero rows: there never were any.
select inbox_conflict.provider, inbox_conflict.account, inbox_conflict.mode,
    cast(sum(case
        when inbox_conflict.received_at_us >= $1 and inbox_conflict.received_at_us < $2
        then inbox_conflict.deliveries else 0
    end) as bigint) as deliveries,
    cast(sum(case
        when inbox_event.received_at_us >= $1 and inbox_event.received_at_us < $2
        then inbox_conflict.deliveries else 0
    end) as bigint) as of_events
from inbox_conflict
join inbox_event
  on inbox_event.provider = inbox_conflict.provider and inbox_event.account = inbox_conflict.account
  and inbox_event.mode = inbox_conflict.mode and inbox_event.event_id = inbox_conflict.event_id
group by inbox_conflict.provider, inbox_conflict.account, inbox_conflict.mode
order by inbox_conflict.provider, inbox_conflict.account, inbox_conflict.mode
