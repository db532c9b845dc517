-- What stands in your tables and is no effect: the rows that effects.sql leaves out, with your word for how
-- they stand. It is asked by object_id before something is booked as missing, and has no window. Whatever a
-- list in effects.sql gets more must leave the list here.
-- Proposed by `recon init --from` for the pay gem (pay_charges, pay_customers), and yours to change.
-- What it takes for granted stands in effects.sql.
select
    'charge:' || cast(h.id as text) as effect_id,
    'stripe' as provider,
    coalesce(c.stripe_account, '') as account,
    'live' as mode,
    h.processor_id as object_id,
    'credit' as kind,
    case when (h.object ->> 'status') = 'failed' then 'failed' else 'pending' end as status
from pay_charges h
join pay_customers c on c.id = h.customer_id and c.processor = 'stripe'
where coalesce((h.object ->> 'status'), 'succeeded') <> 'succeeded' or coalesce(cast((h.object ->> 'amount_captured') as bigint), h.amount) <= 0
