-- The unique indexes of the table $1, one row for each of their parts, in order; a part without a column is an
-- expression. No row means that nothing is unique.
select list.name, list.partial, part.name, part.coll, made.sql
from pragma_index_list($1) list
join pragma_index_xinfo(list.name) part
left join sqlite_schema made on made.type = 'index' and made.name = list.name
where list."unique" = 1 and part.key = 1
order by list.name, part.seqno
