-- The body of one received event.
-- Proposed by `recon init --from` for laravel-webhook-client (webhook_calls), and yours to change.
-- What it takes for granted stands in inbox.sql.
select json_value(payload, '$.id') as event_id, payload as body
from webhook_calls
where json_value(payload, '$.id') = :event_id and name = 'stripe' and :provider = 'stripe'
order by id
