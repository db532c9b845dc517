-- What is kept of these ids. Key: alias's primary key. Zero rows: none of them is kept.
select alias_id, root_id, is_part
from alias
where provider = $1 and account = $2 and mode = $3 and alias_id in (values ($4))
