-- What became of the events that announce an effect, one row per unit. `outcome` is the first that is true:
--
-- dead_letter, parked              the inbox gave one up, or put one aside
-- marked_processed_without_effect  the inbox says that one is done with
-- pending_too_long                 one waits in the inbox
-- in_flight                        one is not there yet, and the provider still tries
-- missed                           one never came, and the provider tries no more
-- not_subscribed                   the endpoint listens to none of them
create view delivery as
select provider, account, mode, root_id, object_id, tracks as kind,
    case
        when count(*) filter (where held_as = 'dead') > 0 then 'dead_letter'
        when count(*) filter (where held_as = 'parked') > 0 then 'parked'
        when count(*) filter (where held_as = 'applied') > 0 then 'marked_processed_without_effect'
        when count(*) filter (where held_as = 'received') > 0 then 'pending_too_long'
        when count(*) filter (where held_as = '' and wanted = 1 and settled = 0) > 0 then 'in_flight'
        when count(*) filter (where held_as = '' and wanted = 1) > 0 then 'missed'
        when count(*) filter (where held_as in ('superseded', 'ignored')) > 0 then 'marked_processed_without_effect'
        else 'not_subscribed'
    end as outcome
from heard_event
where tracks not in ('', 'state')
group by provider, account, mode, root_id, object_id, tracks;
