-- Ledger entries of the named objects, in every scope: the caller keeps its own scope and kind.
-- Index: ledger_entry_object. Zero rows: nothing is booked on any of them.
select entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor, currency,
       occurred_at_us, applied_at_us, event_id, corrects_entry_id, run_id, reason
from ledger_entry
where object_id in (values ($1))
order by applied_at_us, entry_id
