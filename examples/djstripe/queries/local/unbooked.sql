-- What stands in your tables and is no effect: the rows that effects.sql leaves out, with your word for how
-- they stand. It is asked by object_id before something is booked as missing, and has no window. Whatever a
-- list in effects.sql gets more must leave the list here.
-- Proposed by `recon init --from` for dj-stripe (djstripe_charge, djstripe_dispute), and yours to change.
-- What it takes for granted stands in effects.sql.
select
    'charge:' || h.id as effect_id,
    'stripe' as provider,
    '' as account,
    case when not h.livemode then 'test' else 'live' end as mode,
    h.id as object_id,
    'credit' as kind,
    case when h.status = 'failed' then 'failed' else 'pending' end as status
from djstripe_charge h
where h.status <> 'succeeded' or not coalesce((h.stripe_data ->> 'captured') = 'true', false)
