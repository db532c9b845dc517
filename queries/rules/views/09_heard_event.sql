-- The provider's events, and what the inbox says of each: `held_as` is its status there, empty where the inbox
-- does not have it. Where the inbox has an event twice, the status that is furthest along counts.
create view heard_event as
select said.provider, said.account, said.mode, said.root_id, said.object_id, said.event_id, said.tracks,
    said.created_us, said.wanted, said.settled, coalesce(held.status, '') as held_as
from provider_event as said
left join (
    select provider, account, mode, event_id, status,
        row_number() over (
            partition by provider, account, mode, event_id
            order by case status
                when 'dead' then 1 when 'parked' then 2 when 'ignored' then 3
                when 'superseded' then 4 when 'applied' then 5 when 'received' then 6
            end
        ) as place
    from inbox_event
) as held
    on held.provider = said.provider and held.account = said.account and held.mode = said.mode
    and held.event_id = said.event_id and held.place = 1;
