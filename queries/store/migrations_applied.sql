-- The migrations that were carried out to their end, in order. Zero rows: none was.
select version, checksum from _sqlx_migrations where success order by version
