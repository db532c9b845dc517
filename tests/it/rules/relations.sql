create table provider_event (
    provider text not null,
    account text not null,
    mode text not null,
    root_id text not null,
    object_id text not null,
    event_id text not null,
    event_type text not null,
    tracks text not null,
    created_us bigint not null,
    wanted bigint not null,
    settled bigint not null
);
create table inbox_event (
    provider text not null,
    account text not null,
    mode text not null,
    event_id text not null,
    event_type text not null,
    received_at_us bigint not null,
    status text not null,
    body_sha256 text not null
);
create table provider_effect (
    provider text not null,
    account text not null,
    mode text not null,
    root_id text not null,
    object_id text not null,
    kind text not null,
    amount_minor bigint not null,
    currency text not null,
    occurred_at_us bigint not null,
    intent text not null,
    in_window bigint not null
);
create table local_effect (
    provider text not null,
    account text not null,
    mode text not null,
    root_id text not null,
    object_id text not null,
    effect_id text not null,
    kind text not null,
    amount_minor bigint not null,
    currency text not null,
    applied_at_us bigint not null,
    event_id text not null,
    corrects_effect_id text not null,
    in_window bigint not null
);
create table provider_state (
    provider text not null,
    account text not null,
    mode text not null,
    root_id text not null,
    object_id text not null,
    status text not null,
    refunded_minor bigint,
    authorized_minor bigint,
    at_us bigint not null
);
create table local_state (
    provider text not null,
    account text not null,
    mode text not null,
    root_id text not null,
    object_id text not null,
    status text not null,
    refunded_minor bigint,
    updated_at_us bigint not null,
    changed_by text not null
);
