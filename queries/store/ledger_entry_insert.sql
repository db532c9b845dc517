-- Books effects. Relies on the unique key (provider, account, mode, effect_key) and on the primary
-- key entry_id; a row that is missing from the answer was already there and is left as it was.
insert into ledger_entry (
    entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor, currency,
    occurred_at_us, applied_at_us, event_id, corrects_entry_id, run_id, reason
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
on conflict do nothing
returning entry_id
