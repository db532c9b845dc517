-- Ledger entries by id. Primary key: entry_id. Zero rows: none of them is in the ledger.
select entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor, currency,
       occurred_at_us, applied_at_us, event_id, corrects_entry_id, run_id, reason
from ledger_entry
where entry_id in (values ($1))
