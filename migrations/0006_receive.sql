-- What the receiver and the worker need besides the inbox.

-- Signed headers (JSON object of names and values; never one that is itself a secret) and the URL they were
-- signed for, which of the endpoint's secrets matched, when the event came to an end, and what it waits for
-- while it is parked (an effect key).
alter table inbox_event add column headers text not null default '';
alter table inbox_event add column url text not null default '';
alter table inbox_event add column secret_slot bigint not null default 0;
alter table inbox_event add column completed_at_us bigint;
alter table inbox_event add column parked_for text not null default '';

-- What the worker claims: due events, oldest due first.
create index inbox_event_due on inbox_event (next_attempt_at_us, received_at_us)
    where status in ('received', 'parked');
-- What waits for a person.
create index inbox_event_dead on inbox_event (received_at_us) where status = 'dead';
-- What wakes when an effect lands.
create index inbox_event_parked on inbox_event (parked_for) where status = 'parked';

-- The same event id with other bytes: kept, never applied.
create table inbox_conflict (
    provider text not null,
    account text not null,
    mode text not null,
    event_id text not null,
    body_sha256 text not null,
    body blob not null,
    received_at_us bigint not null,
    deliveries bigint not null default 1,
    primary key (provider, account, mode, event_id, body_sha256)
);

-- What a person did to an event, and why. Insert only.
create table inbox_action (
    provider text not null,
    account text not null,
    mode text not null,
    event_id text not null,
    action text not null check (action in ('retry', 'discard', 'replay', 'redeliver', 'prune')),
    reason text not null,
    actor text not null,
    at_us bigint not null,
    primary key (provider, account, mode, event_id, action, at_us)
);

-- Sending: attempts so far, when the next is due, and how the last one failed. A message that is not tried
-- again without a person has `dead_at_us`.
alter table outbox_message add column effect_key text not null default '';
alter table outbox_message add column attempts bigint not null default 0;
alter table outbox_message add column next_attempt_at_us bigint not null default 0;
alter table outbox_message add column last_error text not null default '';
alter table outbox_message add column dead_at_us bigint;
create index outbox_message_due on outbox_message (next_attempt_at_us)
    where sent_at_us is null and dead_at_us is null and suppressed_reason = '';

-- Counters that outlive a process, for the health section of reports: deliveries refused by reason.
create table refused_delivery (
    provider text not null,
    reason text not null,
    day_us bigint not null,
    deliveries bigint not null,
    primary key (provider, reason, day_us)
);
