-- The columns of every table and view that this role may read, in order; the schema is empty where the search path
-- finds the table. Reads the catalogue only; no rows mean that there is nothing, or no grant.
select
    case when c.table_schema = current_schema() then '' else cast(c.table_schema as text) end as table_schema,
    cast(c.table_name as text) as table_name,
    cast(c.column_name as text) as column_name,
    cast(c.data_type as text) as data_type
from information_schema.columns c
where c.table_schema not in ('pg_catalog', 'information_schema')
    and has_column_privilege(quote_ident(c.table_schema) || '.' || quote_ident(c.table_name), c.column_name, 'select')
order by 1, 2, c.ordinal_position
limit 20000
