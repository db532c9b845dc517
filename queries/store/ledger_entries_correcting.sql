-- Entries that undo the named entries. Index: ledger_entry_corrects. Zero rows: all of them stand.
select entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor, currency,
       occurred_at_us, applied_at_us, event_id, corrects_entry_id, run_id, reason
from ledger_entry
where corrects_entry_id <> '' and corrects_entry_id in (values ($1))
