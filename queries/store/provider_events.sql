-- Events as the provider lists them. Primary key: (provider, account, mode, stream, record_id). Zero
-- rows: no run has seen them.
select provider, account, mode, record_id, created_us, body
from provider_record
where (provider, account, mode, stream, record_id) in (values ($1, $2, $3, $4, $5))
