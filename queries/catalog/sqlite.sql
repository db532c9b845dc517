-- The columns of every table and view, in order. Reads the catalogue only; no rows mean an empty database.
select
    '' as table_schema,
    m.name as table_name,
    c.name as column_name,
    c.type as data_type
from sqlite_master m
join pragma_table_info(m.name) c
where m.type in ('table', 'view') and m.name not like 'sqlite\_%' escape '\'
order by m.name, c.cid
limit 20000
