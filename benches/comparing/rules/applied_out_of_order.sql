-- Payments whose later effects were booked before the credit.
select c.provider, c.account, c.mode, c.root_id
from local_effect c
join local_effect o
  on o.provider = c.provider and o.account = c.account and o.mode = c.mode and o.root_id = c.root_id
where c.kind = 'credit' and o.kind <> 'credit' and o.applied_at_us < c.applied_at_us
