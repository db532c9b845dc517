-- Records events as processed. Relies on the primary key (provider, account, mode, event_id); an
-- event that is missing from the answer was recorded before.
insert into applied_event (provider, account, mode, event_id, applied_at_us, run_id)
values ($1, $2, $3, $4, $5, $6)
on conflict do nothing
returning event_id
