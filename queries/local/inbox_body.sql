-- The body of one received event, bytes as received; asked for only where a finding or a replay needs it.
-- :provider, :account and :event_id name the event. No row means that the body is no longer kept.
select body
from inbox_event
where provider = :provider and account = :account and event_id = :event_id
