-- Waits until no other transaction of this database holds recon's write lock, and holds it until this
-- one ends. Lock: one advisory lock of the transaction, number "recon" in ASCII. Always one row.
select 1 as locked from pg_advisory_xact_lock(491327287150)
