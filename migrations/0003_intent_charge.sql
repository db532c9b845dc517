-- What each successful charge that was ever read was meant to pay, so that a run finds the charges of one
-- intent that other windows hold. Made from provider_record, and anew where intent_index lacks the scope.
create table intent_charge (
    provider text not null,
    account text not null,
    mode text not null,
    charge_id text not null,
    intent text not null,
    primary key (provider, account, mode, charge_id)
);
create index intent_charge_intent on intent_charge (provider, account, mode, intent);

-- The setting `intent` that the rows of a scope were made with; empty: none. Where it is another now, or no
-- row is there, they are made anew from every stored charge.
create table intent_index (
    provider text not null,
    account text not null,
    mode text not null,
    path text not null,
    primary key (provider, account, mode)
);
