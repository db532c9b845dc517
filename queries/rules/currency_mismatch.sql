-- Finds effects that are booked in another currency than the provider's, even where the number is equal.
--
-- Proof: `provider_effect` and `local_effect` both have the object, and more than one currency among them.
-- `currency` is the provider's. `expected_minor` is the provider's amount less what is booked in the right
-- currency; `found_minor` is booked in the first other currency, so the two are never subtracted.
with
-- The amounts in the provider's currency, and the first other currency that the books have.
mixed as (
    select provider, account, mode, object_id, kind, currency, unit_currency, expected_minor, found_minor,
        row_number() over (
            partition by provider, account, mode, root_id, object_id, kind
            order by case when currency <> unit_currency and found_minor <> 0 then 0 else 1 end, currency
        ) as place,
        case when currency <> unit_currency then found_minor else 0 end as other_minor
    from judged_amount
    where verdict = 'mixed'
)
select
    'currency_mismatch' as kind, '' as cause, provider, account, mode, object_id, kind as effect,
    unit_currency as currency,
    cast(sum(case when currency = unit_currency then expected_minor - found_minor else 0 end) as bigint)
        as expected_minor,
    cast(sum(case when place = 1 then other_minor else 0 end) as bigint) as found_minor,
    '' as expected_state, '' as found_state
from mixed
group by provider, account, mode, object_id, kind, unit_currency
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
