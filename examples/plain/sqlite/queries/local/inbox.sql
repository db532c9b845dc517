-- What was received in the window.
-- Proposed by `recon init --from` for a plain inbox (webhook_events), and yours to change.
-- Taken for granted:
--  * every row of webhook_events is about Stripe: there is no column that says whose it is
--  * all of webhook_events is live: there is no column that says so
--  * webhook_events.received_at is text without a zone, or with one, and UTC where it has none
select
    'stripe' as provider,
    '' as account,
    'live' as mode,
    event_id as event_id,
    event_type as event_type,
    cast(strftime('%s', received_at) as integer) * 1000000
        + cast(substr(strftime('%f', received_at), 4) as integer) * 1000 as received_at_us,
    status as status
from webhook_events
where (received_at_us is null or (
        received_at_us >= :from_us
        and received_at_us < :until_us
    ))
