-- The statement that made the table $1, then those of its indexes and triggers. An index of a constraint has none.
select sql from sqlite_schema where tbl_name = $1 and sql is not null order by type <> 'table', name
