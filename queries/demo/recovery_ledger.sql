-- The demonstration of recovery: the ledger, in the order of booking. Zero rows: nothing was booked.
select effect_key, object_id, amount_minor, currency, event_id
from ledger_entry
order by applied_at_us, entry_id
