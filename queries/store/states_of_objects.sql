-- Local statuses of the named objects. Primary key: (provider, account, mode, object_id). Zero rows:
-- none is recorded.
select provider, account, mode, object_id, status, refunded_minor, provider_time_us, updated_at_us,
       changed_by
from object_state
where (provider, account, mode, object_id) in (values ($1, $2, $3, $4))
