-- Which column of which table number $1 (pg_class.oid) and $2 (attnum) are. Reads the catalogue only.
-- No row means that it is gone.
select
    cast(n.nspname as text) as schema_name,
    cast(c.relname as text) as table_name,
    cast(a.attname as text) as column_name
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where a.attrelid = cast(cast($1 as bigint) as oid) and a.attnum = cast($2 as bigint)
