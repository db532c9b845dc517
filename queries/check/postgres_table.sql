-- What kind of relation $2 in the schema $1 is ('': the first in the search path), and whether a crash empties it.
-- No row means that there is none, or none in the search path.
select
    cast(n.nspname as text) as schema_name,
    cast(c.relname as text) as table_name,
    cast(c.relkind as text) as kind,
    cast(c.relpersistence as text) as persistence
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relname = cast($2 as text)
    and c.relkind in ('r', 'p', 'v', 'm', 'f')
    and case when cast($1 as text) = '' then pg_catalog.pg_table_is_visible(c.oid) else n.nspname = cast($1 as text) end
limit 1
