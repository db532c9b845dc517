-- Our own tables of more than 100 pages that were never analysed, or have more than four times the pages that they had then,
-- as far as the user may analyse them. Zero rows: nothing to do.
select c.relname::text as table_name
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where c.oid in (
        to_regclass('provider_record'), to_regclass('alias'), to_regclass('intent_charge'), to_regclass('invoice_part'),
        to_regclass('inbox_event'), to_regclass('ledger_entry'), to_regclass('object_state')
    )
    and pg_has_role(c.relowner, 'usage')
    and pg_relation_size(c.oid) > 100 * current_setting('block_size')::bigint
    and (
        pg_relation_size(c.oid) > 4 * c.relpages * current_setting('block_size')::bigint
        or not exists (
            select 1
            from pg_stats s
            where s.schemaname = n.nspname and s.tablename = c.relname
        )
    )
