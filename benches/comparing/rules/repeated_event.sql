-- Events that the inbox or the provider's list has more than once.
select e.provider, e.account, e.mode, e.root_id
from provider_event e
join (
  select provider, account, mode, event_id from inbox_event
  group by provider, account, mode, event_id having count(*) > 1
  union
  select provider, account, mode, event_id from provider_event
  group by provider, account, mode, event_id having count(*) > 1
) d on d.provider = e.provider and d.account = e.account and d.mode = e.mode and d.event_id = e.event_id
