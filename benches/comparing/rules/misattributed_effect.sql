-- Local rows that name the event of another payment: both payments.
with wrong as (
  select e.provider, e.account, e.mode, e.root_id as event_root_id, l.root_id as row_root_id
  from local_effect l
  join provider_event e
    on e.provider = l.provider and e.account = l.account and e.mode = l.mode and e.event_id = l.event_id
  where e.root_id <> l.root_id
)
select provider, account, mode, event_root_id as root_id from wrong
union
select provider, account, mode, row_root_id from wrong
