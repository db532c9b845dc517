-- What kind of table the second bind in the database of the first is ('': the one of the connection), and its engine.
-- No row means that there is none, or none that this user may see.
select table_schema, table_name, table_type, coalesce(engine, '')
from information_schema.tables
where table_schema = coalesce(nullif(?, ''), database()) and table_name = ?
