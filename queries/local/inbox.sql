-- What was received: one row for each event that the inbox got in the window. Rewrite it for your own
-- table; the names of the columns are the contract.
--   provider, account, mode   as in effects.sql
--   event_id, event_type      the provider's
--   received_at_us   first receipt, Unix microseconds
--   status           received, applied, superseded, ignored, parked or dead (also: pending, new, queued,
--                    processing, processed, done, completed, skipped, failed, error, dead_letter)
--   body_sha256      may be left out; two different ones for one event are a conflict
-- :from_us and :until_us are the window, [from, until). No row means that nothing was received.
select
    provider,
    account,
    mode,
    event_id,
    event_type,
    received_at_us,
    status,
    body_sha256
from inbox_event
where received_at_us >= :from_us and received_at_us < :until_us
