-- What stands in your tables and is no effect: the rows that effects.sql leaves out, with your word for how
-- they stand. It is asked by object_id before something is booked as missing, and has no window. Whatever a
-- list in effects.sql gets more must leave the list here.
-- Proposed by `recon init --from` for plain books (payments, refunds), and yours to change.
-- What it takes for granted stands in effects.sql.
select
    'payment:' || cast(p.id as text) as effect_id,
    'stripe' as provider,
    '' as account,
    'live' as mode,
    p.stripe_payment_intent_id as object_id,
    'credit' as kind,
    coalesce(cast(p.status as text), '') as status
from payments p
where (
        p.stripe_payment_intent_id is null
        or p.status is null
        or p.status not in (
        'paid', 'succeeded', 'success', 'successful', 'completed', 'complete', 'captured', 'settled',
        'approved', 'confirmed', 'fulfilled', 'shipped', 'delivered', 'partially_refunded', 'partial_refund', 'refunded',
        'fully_refunded', 'returned', 'disputed', 'in_dispute', 'chargeback', 'dispute_lost', 'charged_back', 'lost'
        )
    )
union all
select
    'refund:' || cast(r.id as text) as effect_id,
    'stripe' as provider,
    '' as account,
    'live' as mode,
    r.stripe_refund_id as object_id,
    'refund' as kind,
    '' as status
from refunds r
where r.stripe_refund_id is null
