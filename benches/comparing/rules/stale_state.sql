-- Local statuses that are not the highest of the provider's words, or whose refunded total differs.
with p as (
  select provider, account, mode, root_id, max(refunded_minor) as refunded_minor,
         max(case status when 'pending' then 0 when 'failed' then 1 when 'canceled' then 2 when 'paid' then 3
             when 'partially_refunded' then 4 when 'refunded' then 5 when 'disputed' then 6 else 7 end) as rank
  from provider_state group by provider, account, mode, root_id
)
select l.provider, l.account, l.mode, l.root_id
from local_state l
left join p on p.provider = l.provider and p.account = l.account and p.mode = l.mode and p.root_id = l.root_id
where p.rank is null or p.refunded_minor <> l.refunded_minor
   or p.rank <> case l.status when 'pending' then 0 when 'failed' then 1 when 'canceled' then 2 when 'paid' then 3
                when 'partially_refunded' then 4 when 'refunded' then 5 when 'disputed' then 6 else 7 end
