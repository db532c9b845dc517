-- Writes messages in the transaction of their effects. Primary key: idempotency_key, the effect's key with its
-- scope: one effect has one message, whoever applies it. Zero rows: all were there.
insert into outbox_message (
    idempotency_key, provider, account, mode, object_id, topic, body, created_at_us, suppressed_reason,
    effect_key
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (idempotency_key) do nothing
returning idempotency_key
