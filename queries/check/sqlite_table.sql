-- What $1 is, and whether its primary key cannot be null (without rowid). No row means that there is none.
select name, type, wr from pragma_table_list where schema = 'main' and name = $1
