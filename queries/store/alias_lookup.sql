-- Where the named ids of one scope lead. Relies on the primary key of alias (scope, alias_id).
-- `($4)` is repeated for as many ids as are asked for. An id without a row has no known alias.
select alias_id, root_id, is_part
from alias
where provider = $1 and account = $2 and mode = $3 and alias_id in ($4)
