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
    cast(strftime('%s', p.updated_at) as integer) * 1000000
        + cast(substr(strftime('%f', p.updated_at), 4) as integer) * 1000 as updated_at_us
from payments p
where p.updated_at is not null
    and (updated_at_us is null or (
        updated_at_us >= :from_us
        and updated_at_us < :until_us
    ))
    and p.stripe_payment_intent_id is not null
