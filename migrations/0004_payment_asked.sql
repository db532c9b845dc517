-- Whether a payment was asked for whole (every charge, refund and dispute of it, of any time) when a run last
-- doubted it, so that an offline run knows which payments it may judge.
create table payment_asked (
    provider text not null,
    account text not null,
    mode text not null,
    root_id text not null,
    is_whole bigint not null check (is_whole in (0, 1)),
    asked_at_us bigint not null,
    primary key (provider, account, mode, root_id)
);
