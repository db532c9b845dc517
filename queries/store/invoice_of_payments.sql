-- Invoices that these payments paid a part of. Index: invoice_part_payment. Zero rows: none of them shares an
-- invoice.
select invoice_id
from invoice_part
where provider = $1 and account = $2 and mode = $3 and payment_id in (values ($4))
