-- When the team was last told of this. Primary key: kind. Zero rows: never.
select told_at_us
from notification
where kind = $1
