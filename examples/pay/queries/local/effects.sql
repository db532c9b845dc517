-- What your books did: one row for each effect booked in the window.
-- Proposed by `recon init --from` for the pay gem (pay_charges, pay_customers), and yours to change.
-- Taken for granted:
--  * rows of pay_charges whose customer has processor 'stripe' are Stripe charges, and the amounts are whole
--    minor units
--  * all of it is live: pay keeps no mode. Write 'test' in effects.sql where the database is that of a test
--    account
--  * pay keeps one total of refunds for each charge, so refunds of one charge are compared as one sum
--  * the time of a refund is that of the row's last change
-- Not there:
--  * pay keeps no status of a payment: states.sql gives no rows, and disputes are not compared
--  * pay stores only charges of customers that it knows: a payment of anybody else is reported as not booked
select
    'charge:' || cast(h.id as text) as effect_id,
    'stripe' as provider,
    coalesce(c.stripe_account, '') as account,
    'live' as mode,
    h.processor_id as object_id,
    'credit' as kind,
    coalesce(cast((h.object ->> 'amount_captured') as bigint), h.amount) as amount_minor,
    h.currency as currency,
    cast(extract(epoch from h.created_at) * 1000000 as bigint) as applied_at_us,
    null as event_id,
    null as corrects_effect_id
from pay_charges h
join pay_customers c on c.id = h.customer_id and c.processor = 'stripe'
where h.created_at >= to_timestamp(:from_us / 1000000.0) at time zone 'UTC'
    and h.created_at < to_timestamp(:until_us / 1000000.0) at time zone 'UTC'
    and coalesce((h.object ->> 'status'), 'succeeded') = 'succeeded'
    and coalesce(cast((h.object ->> 'amount_captured') as bigint), h.amount) > 0
union all
select
    'refund:' || cast(h.id as text),
    'stripe',
    coalesce(c.stripe_account, ''),
    'live',
    h.processor_id,
    'refund',
    case when h.amount_refunded >= h.amount - coalesce(cast((h.object ->> 'amount_captured') as bigint), h.amount) then h.amount_refunded - (h.amount - coalesce(cast((h.object ->> 'amount_captured') as bigint), h.amount))
        else h.amount_refunded end,
    h.currency,
    cast(extract(epoch from h.updated_at) * 1000000 as bigint) as applied_at_us,
    null,
    null
from pay_charges h
join pay_customers c on c.id = h.customer_id and c.processor = 'stripe'
where h.updated_at >= to_timestamp(:from_us / 1000000.0) at time zone 'UTC'
    and h.updated_at < to_timestamp(:until_us / 1000000.0) at time zone 'UTC'
    and h.amount_refunded > 0
    and case when h.amount_refunded >= h.amount - coalesce(cast((h.object ->> 'amount_captured') as bigint), h.amount) then h.amount_refunded - (h.amount - coalesce(cast((h.object ->> 'amount_captured') as bigint), h.amount))
        else h.amount_refunded end > 0
