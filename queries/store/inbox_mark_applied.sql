-- Marks events as applied, in the transaction of their effect. Primary key: (provider, account, mode,
-- event_id). Zero rows: the inbox does not hold them.
update inbox_event
set status = 'applied', last_error = '', reason = $1
where (provider, account, mode, event_id) in (values ($2, $3, $4, $5))
returning event_id
