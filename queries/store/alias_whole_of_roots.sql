-- Ids that name the same payments as a whole. Index: alias_root. Zero rows: no other id is known.
select provider, account, mode, alias_id, root_id
from alias
where is_part = 0 and root_id in (values ($1))
