-- What your books did: one row for each effect booked in the window.
-- Proposed by `recon init --from` for dj-stripe (djstripe_charge, djstripe_dispute), and yours to change.
-- Taken for granted:
--  * amounts are read from stripe_data, where they are whole minor units: djstripe_charge.amount is in major
--    units
--  * all objects are the platform's own: dj-stripe names an account on each, and does not say which is the
--    platform. With connected accounts, write djstripe_owner_account_id as account for those
--  * refunds are compared as one sum for each charge (its amount_refunded): dj-stripe fills djstripe_refund
--    only where the API shows refunds inside of a charge
--  * the time of a credit is when dj-stripe stored the charge, that of a refund the row's last change
-- Not there:
--  * dj-stripe mirrors Stripe under Stripe's ids, so a credit cannot stand in it twice; what your own code did
--    on its signals (orders, balances) is not in it. Where that is in tables of your own, let effects.sql read
--    those
--  * the money of disputes is not compared, only their status
select
    'charge:' || h.id as effect_id,
    'stripe' as provider,
    '' as account,
    case when not h.livemode then 'test' else 'live' end as mode,
    h.id as object_id,
    'credit' as kind,
    cast((h.stripe_data ->> 'amount_captured') as bigint) as amount_minor,
    h.currency as currency,
    cast(extract(epoch from h.djstripe_created) * 1000000 as bigint) as applied_at_us,
    null as event_id,
    null as corrects_effect_id
from djstripe_charge h
where h.djstripe_created >= to_timestamp(:from_us / 1000000.0)
    and h.djstripe_created < to_timestamp(:until_us / 1000000.0)
    and h.status = 'succeeded'
    and (h.stripe_data ->> 'captured') = 'true'
union all
select
    'refund:' || h.id,
    'stripe',
    '',
    case when not h.livemode then 'test' else 'live' end,
    h.id,
    'refund',
    case when cast((h.stripe_data ->> 'amount_refunded') as bigint) >= cast((h.stripe_data ->> 'amount') as bigint) - cast((h.stripe_data ->> 'amount_captured') as bigint) then cast((h.stripe_data ->> 'amount_refunded') as bigint) - (cast((h.stripe_data ->> 'amount') as bigint) - cast((h.stripe_data ->> 'amount_captured') as bigint))
        else cast((h.stripe_data ->> 'amount_refunded') as bigint) end,
    h.currency,
    cast(extract(epoch from h.djstripe_updated) * 1000000 as bigint) as applied_at_us,
    null,
    null
from djstripe_charge h
where h.djstripe_updated >= to_timestamp(:from_us / 1000000.0)
    and h.djstripe_updated < to_timestamp(:until_us / 1000000.0)
    and h.status = 'succeeded'
    and (h.stripe_data ->> 'captured') = 'true'
    and case when cast((h.stripe_data ->> 'amount_refunded') as bigint) >= cast((h.stripe_data ->> 'amount') as bigint) - cast((h.stripe_data ->> 'amount_captured') as bigint) then cast((h.stripe_data ->> 'amount_refunded') as bigint) - (cast((h.stripe_data ->> 'amount') as bigint) - cast((h.stripe_data ->> 'amount_captured') as bigint))
        else cast((h.stripe_data ->> 'amount_refunded') as bigint) end > 0
