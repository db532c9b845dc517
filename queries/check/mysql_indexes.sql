-- The unique indexes of a table (database, table), one row for each of their parts, in order; a part without a
-- column is an expression. No row means that nothing is unique.
select index_name, column_name, sub_part
from information_schema.statistics
where table_schema = ? and table_name = ? and non_unique = 0
order by index_name, seq_in_index
