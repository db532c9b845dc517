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
--  * refunds.created_at is text without a zone, or with one, and UTC where it has none
--  * payments.created_at is text without a zone, or with one, and UTC where it has none
--  * payments.updated_at is text without a zone, or with one, and UTC where it has none
select
    'payment:' || cast(p.id as text) as effect_id,
    'stripe' as provider,
    '' as account,
    'live' as mode,
    p.stripe_payment_intent_id as object_id,
    'credit' as kind,
    p.amount_cents as amount_minor,
    p.currency as currency,
    cast(strftime('%s', p.created_at) as integer) * 1000000
        + cast(substr(strftime('%f', p.created_at), 4) as integer) * 1000 as applied_at_us,
    null as event_id,
    null as corrects_effect_id
from payments p
where (applied_at_us is null or (
        applied_at_us >= :from_us
        and applied_at_us < :until_us
    ))
    and p.stripe_payment_intent_id is not null
    and p.status in (
        'paid', 'succeeded', 'success', 'successful', 'completed', 'complete', 'captured', 'settled',
        'approved', 'confirmed', 'fulfilled', 'shipped', 'delivered', 'partially_refunded', 'partial_refund', 'refunded',
        'fully_refunded', 'returned', 'disputed', 'in_dispute', 'chargeback', 'dispute_lost', 'charged_back', 'lost'
    )
union all
select
    'refund:' || cast(r.id as text) as effect_id,
    'stripe' as provider,
    '' as account,
    'live' as mode,
    r.stripe_refund_id as object_id,
    'refund' as kind,
    r.amount_cents as amount_minor,
    p.currency as currency,
    cast(strftime('%s', r.created_at) as integer) * 1000000
        + cast(substr(strftime('%f', r.created_at), 4) as integer) * 1000 as applied_at_us,
    null as event_id,
    null as corrects_effect_id
from refunds r
join payments p on p.id = r.payment_id
where (applied_at_us is null or (
        applied_at_us >= :from_us
        and applied_at_us < :until_us
    ))
    and r.stripe_refund_id is not null
