-- What your books say of each payment whose status changed in the window.
-- Proposed by `recon init --from` for plain books (payments, refunds), and yours to change.
-- What it takes for granted stands in effects.sql.
select
    'stripe' as provider,
    '' as account,
    'live' as mode,
    p.stripe_payment_intent_id as object_id,
    p.status as status,
    null as refunded_minor,
    cast(unix_timestamp(p.updated_at) * 1000000 as signed) as updated_at_us
from payments p
where p.updated_at is not null
    and p.updated_at >= from_unixtime(:from_us / 1000000)
    and p.updated_at < from_unixtime(:until_us / 1000000)
    and p.stripe_payment_intent_id is not null
