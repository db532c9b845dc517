-- The tables of the pay gem for Rails that matter here, as PostgreSQL has them. Written for this example from the columns
-- that pay's own migrations make: db/migrate/1_create_pay_tables.rb, 2_add_pay_sti_columns.rb and
-- 20250415151129_add_object_to_pay_models.rb of https://github.com/pay-rails/pay, pay 11.1, read 2026-11-30.

create table pay_customers (
    id bigint not null primary key,
    owner_type varchar(255),
    owner_id bigint,
    processor varchar(255) not null,
    processor_id varchar(255),
    stripe_account varchar(255),
    type varchar(255),
    created_at timestamp not null,
    updated_at timestamp not null,
    unique (processor, processor_id)
);

create table pay_charges (
    id bigint not null primary key,
    customer_id bigint not null,
    subscription_id bigint,
    processor_id varchar(255) not null,
    amount integer not null,
    currency varchar(255),
    application_fee_amount integer,
    amount_refunded integer,
    type varchar(255),
    object jsonb,
    created_at timestamp not null,
    updated_at timestamp not null,
    unique (customer_id, processor_id)
);

create table pay_webhooks (
    id bigint not null primary key,
    processor varchar(255),
    event_type varchar(255),
    event jsonb,
    created_at timestamp not null,
    updated_at timestamp not null
);
