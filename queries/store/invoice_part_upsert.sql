-- Keeps that a payment paid a part of an invoice; the newest word on what was due wins. Key: invoice_part's
-- primary key. Zero rows are impossible.
insert into invoice_part (provider, account, mode, invoice_id, payment_id, due_minor)
values ($1, $2, $3, $4, $5, $6)
on conflict (provider, account, mode, invoice_id, payment_id) do update set due_minor = excluded.due_minor
returning payment_id
