-- Ids that lead to these. Index: alias_root. Zero rows: no other id is known.
select alias_id, root_id, is_part
from alias
where provider = $1 and account = $2 and mode = $3 and root_id in (values ($4))
