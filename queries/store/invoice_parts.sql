-- The payments of these invoices, where several paid one. Key: invoice_part's primary key. Zero rows: each was
-- paid by one payment, or is not known.
select invoice_id, payment_id, due_minor
from invoice_part
where provider = $1 and account = $2 and mode = $3 and invoice_id in (values ($4))
