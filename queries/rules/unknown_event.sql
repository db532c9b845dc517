-- Finds events in the inbox that the provider does not know. Before a run says so it asks the provider for the
-- very id, because an event near the edge of the window may be listed in the next one.
--
-- Proof: `inbox_event.event_id` has no row in `provider_event`.
--
select distinct
    'unknown_event' as kind, '' as cause, held.provider, held.account, held.mode, held.event_id as object_id,
    '' as effect, '' as currency, cast(null as bigint) as expected_minor, cast(null as bigint) as found_minor,
    '' as expected_state, '' as found_state
from inbox_event as held
left join provider_event as said using (provider, account, mode, event_id)
where said.event_id is null
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
