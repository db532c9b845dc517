-- The end of the chain of corrections. Primary key: sequence. Zero rows: nothing was ever corrected.
select sequence, hash from correction order by sequence desc limit 1
