-- The columns of a table (database, table): type, length, whether null is allowed, and how texts are told apart.
-- No row means that there is no such table, or none that this user may see.
select
    column_name,
    cast(column_type as char),
    cast(data_type as char),
    character_maximum_length,
    is_nullable,
    collation_name,
    cast(column_default as char)
from information_schema.columns
where table_schema = ? and table_name = ?
order by ordinal_position
