-- What your books say of each payment whose status changed in the window.
-- Proposed by `recon init --from` for the pay gem (pay_charges, pay_customers), and yours to change.
-- What it takes for granted stands in effects.sql.
select
    'stripe' as provider,
    '' as account,
    'live' as mode,
    h.processor_id as object_id,
    'paid' as status,
    null as refunded_minor,
    cast(extract(epoch from h.updated_at) * 1000000 as bigint) as updated_at_us
from pay_charges h
where h.updated_at >= to_timestamp(:from_us / 1000000.0) at time zone 'UTC'
    and h.updated_at < to_timestamp(:until_us / 1000000.0) at time zone 'UTC'
    and 1 = 0
