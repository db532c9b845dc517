-- Ledger entries under the named effect keys. Unique key: (provider, account, mode, effect_key).
-- Zero rows: none of these effects is booked under its own key.
select entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor, currency,
       occurred_at_us, applied_at_us, event_id, corrects_entry_id, run_id, reason
from ledger_entry
where (provider, account, mode, effect_key) in (values ($1, $2, $3, $4))
