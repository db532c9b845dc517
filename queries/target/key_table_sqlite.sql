-- SQLite: the table in a team's database that keeps what was carried out there, each effect once. Whoever owns the
-- database makes it; `recon` never does. Its primary key is what every correction by the target `sql` relies on.
create table recon_applied (
    effect_key text not null primary key,
    correction_id text not null,
    run_id text not null,
    applied_at_us bigint not null
)
