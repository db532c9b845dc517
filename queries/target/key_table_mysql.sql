-- MySQL and MariaDB: the table in a team's database that keeps what was carried out there, each effect once. Whoever
-- owns the database makes it; `recon` never does. Its primary key is what every correction by the target `sql` relies
-- on: bytes, so that ids which differ in the case of a letter are different.
create table recon_applied (
    effect_key varbinary(768) not null primary key,
    correction_id varchar(64) character set ascii collate ascii_bin not null,
    run_id varchar(64) character set ascii collate ascii_bin not null,
    applied_at_us bigint not null
) engine = innodb
