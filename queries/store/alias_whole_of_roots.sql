-- Ids that name the same payments as a whole. Index: alias_root. Zero rows: no other id is known.
-- A part is asked for by what it is not: else PostgreSQL takes a table without statistics for one of a single row, and
-- reads all of it instead of the index.
select provider, account, mode, alias_id, root_id
from alias
where is_part <> 1 and root_id in (values ($1))
