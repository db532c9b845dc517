-- Effects that the two sides do not both have once, in the window, with the same amount and currency.
with p as (
  select provider, account, mode, root_id, object_id, kind, currency,
         count(*) as n, sum(amount_minor) as minor, min(in_window) as inside
  from provider_effect group by provider, account, mode, root_id, object_id, kind, currency
), l as (
  select provider, account, mode, root_id, object_id, kind, currency,
         count(*) as n, sum(amount_minor) as minor, min(in_window) as inside
  from local_effect group by provider, account, mode, root_id, object_id, kind, currency
)
select coalesce(p.provider, l.provider) as provider, coalesce(p.account, l.account) as account,
       coalesce(p.mode, l.mode) as mode, coalesce(p.root_id, l.root_id) as root_id
from p
full join l on l.provider = p.provider and l.account = p.account and l.mode = p.mode
  and l.root_id = p.root_id and l.object_id = p.object_id and l.kind = p.kind and l.currency = p.currency
where p.n is null or l.n is null or p.n <> 1 or l.n <> 1 or p.minor <> l.minor or p.inside = 0 or l.inside = 0
