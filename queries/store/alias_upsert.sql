-- Ties an id to the id that it leads to; the newest word wins (an invoice may be paid at the second
-- attempt). Key: alias's primary key. Zero rows are impossible.
insert into alias (provider, account, mode, alias_id, root_id, is_part)
values ($1, $2, $3, $4, $5, $6)
on conflict (provider, account, mode, alias_id)
do update set root_id = excluded.root_id, is_part = excluded.is_part
returning alias_id
