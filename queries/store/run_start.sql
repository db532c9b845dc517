-- Records that a run began. Primary key: run_id. Zero rows: a run of that id began before.
insert into run (run_id, started_at_us, from_us, until_us, time_zone, basis, report_dir)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict do nothing
returning run_id
