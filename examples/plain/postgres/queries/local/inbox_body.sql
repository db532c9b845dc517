-- The body of one received event.
-- Proposed by `recon init --from` for a plain inbox (webhook_events), and yours to change.
-- What it takes for granted stands in inbox.sql.
select event_id as event_id, payload as body
from webhook_events
where event_id = :event_id and :provider = 'stripe'
