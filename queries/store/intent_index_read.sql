-- The setting that a scope's intents were kept with. Key: intent_index's primary key. Zero rows: they were
-- never kept.
select path
from intent_index
where provider = $1 and account = $2 and mode = $3
