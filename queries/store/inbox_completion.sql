-- How long events that were first received from $1 to before $2 took to their end, ms, by scope: mean, the 99th of a
-- hundred (nearest rank), the slowest. Left out are dead letters and what a person filed, retried, discarded or
-- replayed: those waited for somebody. Zero rows: none has ended. Equal times are counted first: a million events are
-- not sorted to find one of them.
select provider, account, mode,
    cast(sum(took_ms * events) as bigint) / cast(sum(events) as bigint) as mean_ms,
    min(case when up_to >= (all_events * 99 + 99) / 100 then took_ms end) as p99_ms,
    max(took_ms) as slowest_ms
from (
    select provider, account, mode, took_ms, events,
        cast(sum(events) over (partition by provider, account, mode order by took_ms) as bigint) as up_to,
        cast(sum(events) over (partition by provider, account, mode) as bigint) as all_events
    from (
        select provider, account, mode, took_ms, count(*) as events
        from (
            select provider, account, mode,
                case when completed_at_us > received_at_us then (completed_at_us - received_at_us) / 1000
                    else 0 end as took_ms
            from inbox_event
            where received_at_us >= $1 and received_at_us < $2
              and completed_at_us is not null and status <> 'dead' and reason = ''
              and not exists (
                  select 1
                  from inbox_action
                  where inbox_action.provider = inbox_event.provider and inbox_action.account = inbox_event.account
                    and inbox_action.mode = inbox_event.mode and inbox_action.event_id = inbox_event.event_id
                    and inbox_action.action in ('retry', 'discard', 'replay')
              )
        ) as ended
        group by provider, account, mode, took_ms
    ) as counted
) as placed
group by provider, account, mode
order by provider, account, mode
