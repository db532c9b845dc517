-- A plain pair: what was received, and what was booked. No framework's; written for this example, for SQLite,
-- PostgreSQL and MariaDB alike.

create table webhook_events (
    id integer not null primary key,
    event_id varchar(255) not null unique,
    event_type varchar(255) not null,
    payload text not null,
    status varchar(20) not null,
    received_at timestamp not null
);

create table payments (
    id integer not null primary key,
    stripe_payment_intent_id varchar(255) not null,
    amount_cents bigint not null,
    currency varchar(3) not null,
    status varchar(32) not null,
    created_at timestamp not null,
    updated_at timestamp not null
);

create table refunds (
    id integer not null primary key,
    payment_id integer not null,
    stripe_refund_id varchar(255) not null unique,
    amount_cents bigint not null,
    created_at timestamp not null
);
