-- How the transactions of whoever says nothing about it are kept apart. One row.
select
    pg_catalog.current_setting('default_transaction_isolation') as isolation,
    pg_catalog.current_setting('server_version') as version
