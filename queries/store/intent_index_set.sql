-- Notes the setting that a scope's intents were kept with, once all of them are. Key: intent_index's primary
-- key. Zero rows are impossible.
insert into intent_index (provider, account, mode, path)
values ($1, $2, $3, $4)
on conflict (provider, account, mode) do update set path = excluded.path
returning path
