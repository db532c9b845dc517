-- SQLite and PostgreSQL: takes a key in a team's database. Relies on the primary key; a writer of the same key is waited
-- for. Zero rows: it was taken before.
insert into recon_applied (effect_key, correction_id, run_id, applied_at_us)
values ($1, $2, $3, $4)
on conflict (effect_key) do nothing
returning effect_key
