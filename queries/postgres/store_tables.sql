-- Whether the tables of a store are there, and how the database writes texts. Always one row.
select current_setting('server_encoding') as encoding,
    case when to_regclass('_sqlx_migrations') is null or to_regclass('run') is null then 0 else 1 end as has_tables
