-- Keeps what a person did to events, and why. Insert only. Primary key: (provider, account, mode, event_id, action,
-- at_us). Zero rows: it is kept already.
insert into inbox_action (provider, account, mode, event_id, action, reason, actor, at_us)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (provider, account, mode, event_id, action, at_us) do nothing
returning event_id
