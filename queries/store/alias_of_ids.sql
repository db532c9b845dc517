-- Where ids lead. Key: alias's primary key. Zero rows: the id leads nowhere (yet).
select alias_id, root_id, is_part
from alias
where provider = $1 and account = $2 and mode = $3 and alias_id in (values ($4))
