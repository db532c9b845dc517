-- Keeps what a charge was meant to pay; the newest word wins. Key: intent_charge's primary key. Zero rows are
-- impossible.
insert into intent_charge (provider, account, mode, charge_id, intent)
values ($1, $2, $3, $4, $5)
on conflict (provider, account, mode, charge_id) do update set intent = excluded.intent
returning charge_id
