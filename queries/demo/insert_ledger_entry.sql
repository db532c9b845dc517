-- The shop of the demonstration books an entry. Relies on the primary key entry_id and the unique
-- effect key. Zero rows: never. The row of values is repeated for bulk loading.
insert into ledger_entry (entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor, currency, occurred_at_us, applied_at_us, event_id, corrects_entry_id)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
returning 1
