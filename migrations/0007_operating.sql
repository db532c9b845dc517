-- What operating the receive side needs.

-- What a person did to a message of the outbox, and why. Insert only.
create table outbox_action (
    idempotency_key text not null,
    action text not null check (action in ('retry')),
    reason text not null,
    actor text not null,
    at_us bigint not null,
    primary key (idempotency_key, action, at_us)
);

-- When the team was last told of what, whichever process told it, and until when one is at telling it.
create table notification (
    kind text not null primary key,
    told_at_us bigint not null,
    held_until_us bigint not null
);

-- Since when a worker tries an event: its first attempt after receipt, a retry or a replay; 0 before it. How long it may
-- wait for another event or for the provider is counted from here, so that an old one is not out of time at once.
alter table inbox_event add column tried_since_us bigint not null default 0;

-- Deliveries beyond the first, counted every minute.
create index inbox_event_repeated on inbox_event (deliveries) where deliveries > 1;
-- Messages, last written first.
create index outbox_message_created on outbox_message (created_at_us);
