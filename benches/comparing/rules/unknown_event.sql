-- Local rows that name an event that the provider does not list, and inbox events that it does not list.
select l.provider, l.account, l.mode, l.root_id
from local_effect l
left join provider_event e
  on e.provider = l.provider and e.account = l.account and e.mode = l.mode and e.event_id = l.event_id
where l.event_id <> '' and e.event_id is null
union all
select i.provider, i.account, i.mode, i.event_id
from inbox_event i
left join provider_event e
  on e.provider = i.provider and e.account = i.account and e.mode = i.mode and e.event_id = i.event_id
where e.event_id is null
