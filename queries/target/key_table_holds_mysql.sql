-- MySQL and MariaDB: whether the key table keeps its promise: a whole column that is compared by its bytes and unique by
-- itself, in an engine with transactions. One row if so; zero rows: it does not.
select c.column_name as kept
from information_schema.columns c
join information_schema.tables t on t.table_schema = c.table_schema and t.table_name = c.table_name
join information_schema.statistics s
    on s.table_schema = c.table_schema and s.table_name = c.table_name and s.column_name = c.column_name
where c.table_schema = database()
  and c.table_name = 'recon_applied'
  and c.column_name = 'effect_key'
  and c.is_nullable = 'NO'
  and (c.collation_name is null or right(c.collation_name, 4) = '_bin')
  and t.engine = 'InnoDB'
  and s.non_unique = 0
  and s.sub_part is null
  and not exists (
      select 1 from information_schema.statistics o
      where o.table_schema = s.table_schema and o.table_name = s.table_name and o.index_name = s.index_name
        and o.seq_in_index > 1
  )
