-- The tables of Laravel Cashier (Stripe), and that of spatie/laravel-webhook-client beside it, as MariaDB has them.
-- Written for this example from the columns that their own migrations make: database/migrations/2019_05_03_000001 to
-- 000003 of https://github.com/laravel/cashier-stripe (`type` of a subscription is `name` before Cashier 15), and
-- create_webhook_calls_table of https://github.com/spatie/laravel-webhook-client, version 3; read 2026-11-30.

create table users (
    id bigint not null primary key,
    name varchar(255) not null,
    stripe_id varchar(255),
    pm_type varchar(255),
    pm_last_four varchar(4),
    trial_ends_at timestamp null
);

create table subscriptions (
    id bigint not null primary key,
    user_id bigint not null,
    type varchar(255) not null,
    stripe_id varchar(255) not null unique,
    stripe_status varchar(255) not null,
    stripe_price varchar(255),
    quantity integer,
    trial_ends_at timestamp null,
    ends_at timestamp null,
    created_at timestamp null,
    updated_at timestamp null
);

create table subscription_items (
    id bigint not null primary key,
    subscription_id bigint not null,
    stripe_id varchar(255) not null unique,
    stripe_product varchar(255) not null,
    stripe_price varchar(255) not null,
    quantity integer,
    created_at timestamp null,
    updated_at timestamp null
);

create table webhook_calls (
    id bigint not null primary key,
    name varchar(255) not null,
    url varchar(512) not null,
    headers json,
    payload json,
    exception text,
    created_at timestamp null,
    updated_at timestamp null
);
