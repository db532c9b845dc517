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
    cast(extract(epoch from p.updated_at) * 1000000 as bigint) as updated_at_us
from payments p
where p.updated_at is not null
    and p.updated_at >= to_timestamp(:from_us / 1000000.0) at time zone 'UTC'
    and p.updated_at < to_timestamp(:until_us / 1000000.0) at time zone 'UTC'
    and p.stripe_payment_intent_id is not null
