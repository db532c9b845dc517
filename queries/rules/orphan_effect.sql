-- Finds local effects that no money at the provider stands behind, one row per object, effect kind and currency.
-- Cause `effect_unknown`: the provider knows the payment and no such money moved (a refund that failed);
-- `object_unknown`: it does not know the payment at all.
--
-- Proof: `local_effect` rows of the object with something left, and no amount in `provider_effect`.
-- `found_minor` is what is booked, signed as it moves the balance.
with
known as (
    select provider, account, mode, root_id from provider_event
    union
    select provider, account, mode, root_id from provider_effect
    union
    select provider, account, mode, root_id from provider_state
)
select
    'orphan_effect' as kind,
    case when known.root_id is null then 'object_unknown' else 'effect_unknown' end as cause,
    provider, account, mode, object_id, kind as effect, currency,
    expected_minor, found_minor, '' as expected_state, '' as found_state
from judged_amount
left join known using (provider, account, mode, root_id)
where verdict = 'orphan' and found_minor <> 0
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
