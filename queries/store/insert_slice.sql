-- Writes slices of one run as they stand now, after delete_slices.sql took them away in the same transaction.
-- Relies on the primary key (provider, account, mode, stream, run_id, from_us, until_us): a conflict is an error.
-- The tuple of values is repeated for each row of a batch.
insert into slice
    (provider, account, mode, stream, from_us, until_us, status, pages, records, cause, closed_at_us, run_id)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
returning from_us
