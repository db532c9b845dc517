-- What your books did: one row for each effect booked in the window.
-- Proposed by `recon init --from` for plain books (payments, refunds), and yours to change.
-- Taken for granted:
--  * payments.stripe_payment_intent_id is Stripe's id of what was paid
--  * payments.amount_cents is whole minor units (cents)
--  * a row was paid where payments.status is one of the words that effects.sql lists
--  * all of payments is live: there is no column that says so
--  * every row of payments is about Stripe: there is no column that says whose it is
--  * a row of payments without stripe_payment_intent_id is no payment by Stripe, so effects.sql leaves it out;
--    `recon check` counts those that are paid
--  * all of refunds is live: there is no column that says so
--  * refunds.created_at has no zone and is UTC
--  * payments.created_at has no zone and is UTC
--  * payments.updated_at has no zone and is UTC
select
    'payment:' || cast(p.id as char) as effect_id,
    'stripe' as provider,
    '' as account,
    'live' as mode,
    p.stripe_payment_intent_id as object_id,
    'credit' as kind,
    p.amount_cents as amount_minor,
    p.currency as currency,
    cast(unix_timestamp(p.created_at) * 1000000 as signed) as applied_at_us,
    null as event_id,
    null as corrects_effect_id
from payments p
where (p.created_at is null or (
        p.created_at >= from_unixtime(:from_us / 1000000)
        and p.created_at < from_unixtime(:until_us / 1000000)
    ))
    and p.stripe_payment_intent_id is not null
    and p.status in (
        'paid', 'succeeded', 'success', 'successful', 'completed', 'complete', 'captured', 'settled',
        'approved', 'confirmed', 'fulfilled', 'shipped', 'delivered', 'partially_refunded', 'partial_refund', 'refunded',
        'fully_refunded', 'returned', 'disputed', 'in_dispute', 'chargeback', 'dispute_lost', 'charged_back', 'lost'
    )
union all
select
    'refund:' || cast(r.id as char) as effect_id,
    'stripe' as provider,
    '' as account,
    'live' as mode,
    r.stripe_refund_id as object_id,
    'refund' as kind,
    r.amount_cents as amount_minor,
    p.currency as currency,
    cast(unix_timestamp(r.created_at) * 1000000 as signed) as applied_at_us,
    null as event_id,
    null as corrects_effect_id
from refunds r
join payments p on p.id = r.payment_id
where (r.created_at is null or (
        r.created_at >= from_unixtime(:from_us / 1000000)
        and r.created_at < from_unixtime(:until_us / 1000000)
    ))
    and r.stripe_refund_id is not null
