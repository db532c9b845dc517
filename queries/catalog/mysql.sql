-- The columns of every table and view of the database that the URL names, in order. Reads the catalogue only; no rows
-- mean that there is nothing, or no grant.
select
    '' as table_schema,
    cast(c.table_name as char) as table_name,
    cast(c.column_name as char) as column_name,
    cast(c.column_type as char) as data_type
from information_schema.columns c
where c.table_schema = database()
order by c.table_name, c.ordinal_position
limit 20000
