-- Finds effects and statuses whose event the inbox holds and that the books do not have. The cause is what the
-- inbox claims: `dead_letter`, `parked`, `pending_too_long`, or `marked_processed_without_effect`: a mark is
-- not a booking.
--
-- Proof: `provider_effect` has the object, no `local_effect` of it has anything left, and an event that
-- announces it (`provider_event.tracks`) is in `inbox_event`. For statuses: `local_state` is behind
-- `provider_state` and a status event of the payment lies unprocessed in `inbox_event`.
-- An inbox row that is waiting (`received`) is taken to wait too long already; a run leaves those alone that
-- came in a moment ago.
with
-- Where the books have several statuses that lag, the lowest.
stuck as (
    select lagging_status.*,
        row_number() over (partition by provider, account, mode, object_id order by found_rank) as place
    from lagging_status
    where delivery in ('dead_letter', 'parked', 'pending_too_long')
)
select
    'unapplied_event' as kind, delivery.outcome as cause, provider, account, mode, object_id, kind as effect,
    currency, expected_minor, found_minor, '' as expected_state, '' as found_state
from unit
join delivery using (provider, account, mode, root_id, object_id, kind)
where unit.verdict = 'missing'
    and delivery.outcome in ('dead_letter', 'parked', 'pending_too_long', 'marked_processed_without_effect')
union all
select
    'unapplied_event', delivery, provider, account, mode, object_id, '', '',
    cast(null as bigint), cast(null as bigint), expected_state, found_state
from stuck
where place = 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
