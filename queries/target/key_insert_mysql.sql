-- MySQL and MariaDB: takes a key in a team's database. Relies on the primary key; a writer of the same key is waited for.
-- A key that was taken before is the error 1062, and no other error means that: `insert ignore` would hide others, too.
insert into recon_applied (effect_key, correction_id, run_id, applied_at_us)
values (?, ?, ?, ?) /* MySQL knows no returning: rows are counted */
