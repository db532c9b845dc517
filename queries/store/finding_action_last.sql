-- The end of what was done to findings. Primary key: sequence. Zero rows: nothing was ever done.
select sequence from finding_action order by sequence desc limit 1
