-- Invoices that these payments paid a part of: a row on one of them may book the payment. Index:
-- invoice_part_payment. Zero rows: none of them shares an invoice.
select provider, account, mode, invoice_id as alias_id, payment_id as root_id
from invoice_part
where payment_id in (values ($1))
