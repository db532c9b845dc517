-- From when on the next request may be sent to a provider, by whichever process asks next: one row for each limited
-- endpoint of an account, and one ('') for the account as a whole. What is lost with it is pace, never data.
create table request_slot (
  provider text not null,
  account text not null,
  mode text not null,
  endpoint text not null,
  next_at_us bigint not null,
  primary key (provider, account, mode, endpoint)
);
