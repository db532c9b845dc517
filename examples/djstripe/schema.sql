-- The tables of dj-stripe that matter here, as PostgreSQL has them. Written for this example from the columns that
-- `manage.py migrate` of dj-stripe 2.11.0 (https://pypi.org/project/dj-stripe/, installed 2026-11-30) makes; columns that
-- are not read are left out. A test of this repository runs the real migrations as well.

create table djstripe_charge (
    djstripe_id bigint not null primary key,
    djstripe_created timestamp with time zone not null,
    djstripe_updated timestamp with time zone not null,
    stripe_data jsonb not null,
    id varchar(255) not null unique,
    livemode boolean,
    created timestamp with time zone,
    amount decimal(11, 2) not null,
    currency varchar(3) not null,
    status varchar(255) not null
);

create table djstripe_dispute (
    djstripe_id bigint not null primary key,
    djstripe_created timestamp with time zone not null,
    djstripe_updated timestamp with time zone not null,
    stripe_data jsonb not null,
    id varchar(255) not null unique,
    livemode boolean,
    created timestamp with time zone,
    charge_id varchar(255)
);

create table djstripe_event (
    djstripe_id bigint not null primary key,
    djstripe_created timestamp with time zone not null,
    djstripe_updated timestamp with time zone not null,
    stripe_data jsonb not null,
    id varchar(255) not null unique,
    livemode boolean,
    created timestamp with time zone,
    api_version varchar(64) not null,
    data jsonb not null,
    request_id varchar(50) not null,
    idempotency_key text not null,
    type varchar(250) not null
);

create table djstripe_webhookeventtrigger (
    id bigint not null primary key,
    remote_ip varchar(39) not null,
    headers jsonb not null,
    body text not null,
    valid boolean not null,
    processed boolean not null,
    exception varchar(128) not null,
    traceback text not null,
    djstripe_version varchar(32) not null,
    created timestamp with time zone not null,
    updated timestamp with time zone not null,
    event_id varchar(255)
);
