-- Finds event ids that the inbox holds with two different bodies: an event never changes at the provider, so one
-- of them is not the provider's. An id that the provider does not know is an unknown_event instead.
--
-- Proof: two different, non-empty `inbox_event.body_sha256` under one `event_id`.
--
with
listed as (
    select provider, account, mode, event_id
    from provider_event
    group by provider, account, mode, event_id
)
select
    'conflicting_event' as kind, '' as cause, held.provider, held.account, held.mode, held.event_id as object_id,
    '' as effect, '' as currency, cast(null as bigint) as expected_minor, cast(null as bigint) as found_minor,
    '' as expected_state, '' as found_state
from inbox_event as held
join listed using (provider, account, mode, event_id)
where held.body_sha256 <> ''
group by held.provider, held.account, held.mode, held.event_id
having count(distinct held.body_sha256) > 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
