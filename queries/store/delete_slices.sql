-- Takes away the slices of one run and stream, to be written anew in the same transaction.
-- Zero rows: the run had none yet.
delete from slice
where provider = $1 and account = $2 and mode = $3 and stream = $4 and run_id = $5
returning from_us
