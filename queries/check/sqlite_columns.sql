-- The columns of the table $1. No row means that there is no such table.
select name, type, "notnull", pk from pragma_table_xinfo($1) where hidden <> 1 order by cid
