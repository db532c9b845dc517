-- Keeps what a person did to messages, and why. Insert only. Primary key: (idempotency_key, action, at_us). Zero rows:
-- it is kept already.
insert into outbox_action (idempotency_key, action, reason, actor, at_us)
values ($1, $2, $3, $4, $5)
on conflict (idempotency_key, action, at_us) do nothing
returning idempotency_key
