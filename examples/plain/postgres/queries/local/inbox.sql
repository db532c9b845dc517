-- What was received in the window.
-- Proposed by `recon init --from` for a plain inbox (webhook_events), and yours to change.
-- Taken for granted:
--  * every row of webhook_events is about Stripe: there is no column that says whose it is
--  * all of webhook_events is live: there is no column that says so
--  * webhook_events.received_at has no zone and is UTC
select
    'stripe' as provider,
    '' as account,
    'live' as mode,
    event_id as event_id,
    event_type as event_type,
    cast(extract(epoch from received_at) * 1000000 as bigint) as received_at_us,
    status as status
from webhook_events
where (received_at is null or (
        received_at >= to_timestamp(:from_us / 1000000.0) at time zone 'UTC'
        and received_at < to_timestamp(:until_us / 1000000.0) at time zone 'UTC'
    ))
