-- Payments whose intent was charged more than once.
select e.provider, e.account, e.mode, e.root_id
from provider_effect e
join (
  select provider, account, mode, intent from provider_effect
  where kind = 'credit' and intent <> '' group by provider, account, mode, intent having count(*) > 1
) d on d.provider = e.provider and d.account = e.account and d.mode = e.mode and d.intent = e.intent
where e.kind = 'credit'
