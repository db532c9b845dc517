-- What was received in the window.
-- Proposed by `recon init --from` for laravel-webhook-client (webhook_calls), and yours to change.
-- Taken for granted:
--  * deliveries of Stripe have the name 'stripe' in webhook_calls, as laravel-stripe-webhooks writes it
--  * a row without an exception counts as received: the table does not say that its job has run
--  * webhook_calls.payload holds the event, though not its bytes as received: Laravel writes it anew
--  * webhook_calls.created_at has no zone and is UTC
--  * an event is looked up by a field of its JSON, which reads the whole table: where it is large, add a
--    generated column of payload's id with an index, and name it in inbox.sql and inbox_body.sql
select
    'stripe' as provider,
    coalesce(json_value(payload, '$.account'), '') as account,
    case when json_value(payload, '$.livemode') in ('1', 'true') then 'live' else 'test' end as mode,
    json_value(payload, '$.id') as event_id,
    json_value(payload, '$.type') as event_type,
    cast(unix_timestamp(created_at) * 1000000 as signed) as received_at_us,
    case when exception is not null then 'failed' else 'received' end as status
from webhook_calls
where created_at >= from_unixtime(:from_us / 1000000)
    and created_at < from_unixtime(:until_us / 1000000)
    and name = 'stripe'
