-- When a person last had events tried again. Primary key: (provider, account, mode, event_id, action, at_us). Zero rows:
-- nobody did.
select provider, account, mode, event_id, max(at_us) as at_us
from inbox_action
where (provider, account, mode, event_id) in (values ($1, $2, $3, $4))
  and action in ('retry', 'replay')
group by provider, account, mode, event_id
