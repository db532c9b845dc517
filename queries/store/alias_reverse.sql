-- Ids of one scope that lead straight to the named ones. Relies on the index alias_root.
-- `($4)` is repeated for as many ids as are asked for. No row means that nothing leads there.
select alias_id, root_id, is_part
from alias
where provider = $1 and account = $2 and mode = $3 and root_id in ($4)
