-- Ids that lead to these. Index: alias_root. An invoice that several payments paid leads to none of them (key:
-- invoice_part's primary key). Zero rows: no other id is known.
select alias_id, root_id, is_part
from alias
where provider = $1 and account = $2 and mode = $3 and root_id in (values ($4))
    and not exists (
        select 1
        from invoice_part
        where invoice_part.provider = alias.provider and invoice_part.account = alias.account
            and invoice_part.mode = alias.mode and invoice_part.invoice_id = alias.alias_id
    )
