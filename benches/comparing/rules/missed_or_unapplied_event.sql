-- Wanted events that the inbox does not have, or has and did not deal with.
select e.provider, e.account, e.mode, e.root_id
from provider_event e
left join inbox_event i
  on i.provider = e.provider and i.account = e.account and i.mode = e.mode and i.event_id = e.event_id
where e.wanted = 1 and (i.event_id is null or i.status not in ('applied', 'ignored', 'superseded'))
