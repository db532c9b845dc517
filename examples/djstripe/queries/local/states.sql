-- What your books say of each payment whose status changed in the window.
-- Proposed by `recon init --from` for dj-stripe (djstripe_charge, djstripe_dispute), and yours to change.
-- What it takes for granted stands in effects.sql.
select
    'stripe' as provider,
    '' as account,
    case when not h.livemode then 'test' else 'live' end as mode,
    h.id as object_id,
    case
        when exists (
            select 1 from djstripe_dispute d where d.charge_id = h.id and (d.stripe_data ->> 'status') in ('lost')) then 'dispute_lost'
        when exists (
            select 1 from djstripe_dispute d where d.charge_id = h.id and (d.stripe_data ->> 'status') in ('needs_response', 'under_review')) then 'disputed'
        when h.status = 'pending' or not ((h.stripe_data ->> 'captured') = 'true') then 'pending'
        when case when cast((h.stripe_data ->> 'amount_refunded') as bigint) >= cast((h.stripe_data ->> 'amount') as bigint) - cast((h.stripe_data ->> 'amount_captured') as bigint) then cast((h.stripe_data ->> 'amount_refunded') as bigint) - (cast((h.stripe_data ->> 'amount') as bigint) - cast((h.stripe_data ->> 'amount_captured') as bigint))
        else cast((h.stripe_data ->> 'amount_refunded') as bigint) end >= cast((h.stripe_data ->> 'amount_captured') as bigint) then 'refunded'
        when case when cast((h.stripe_data ->> 'amount_refunded') as bigint) >= cast((h.stripe_data ->> 'amount') as bigint) - cast((h.stripe_data ->> 'amount_captured') as bigint) then cast((h.stripe_data ->> 'amount_refunded') as bigint) - (cast((h.stripe_data ->> 'amount') as bigint) - cast((h.stripe_data ->> 'amount_captured') as bigint))
        else cast((h.stripe_data ->> 'amount_refunded') as bigint) end > 0 then 'partially_refunded'
        else 'paid'
    end as status,
    case when (h.stripe_data ->> 'captured') = 'true' then case when cast((h.stripe_data ->> 'amount_refunded') as bigint) >= cast((h.stripe_data ->> 'amount') as bigint) - cast((h.stripe_data ->> 'amount_captured') as bigint) then cast((h.stripe_data ->> 'amount_refunded') as bigint) - (cast((h.stripe_data ->> 'amount') as bigint) - cast((h.stripe_data ->> 'amount_captured') as bigint))
        else cast((h.stripe_data ->> 'amount_refunded') as bigint) end end as refunded_minor,
    cast(extract(epoch from h.djstripe_updated) * 1000000 as bigint) as updated_at_us
from djstripe_charge h
where h.djstripe_updated >= to_timestamp(:from_us / 1000000.0)
    and h.djstripe_updated < to_timestamp(:until_us / 1000000.0)
    and h.status <> 'failed'
