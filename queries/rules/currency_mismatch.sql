-- Finds effects that are booked in another currency than the provider's, even where the number is equal.
--
-- Proof: `provider_effect` and `local_effect` both have the object, and more than one currency among them.
-- One row has the provider's `currency`: there `expected_minor` is the provider's amount less what is booked in
-- the right currency, and `found_minor` is booked in the first currency that the provider has not, so the two are
-- never subtracted. Every other currency in which the sides differ is a row of its own, with both amounts in it.
with
-- Beside each amount the first currency that the books have and the provider has not.
mixed as (
    select judged_amount.*,
        min(case when expected_minor = 0 and found_minor <> 0 then currency end) over same_unit as wrong_currency
    from judged_amount
    where verdict = 'mixed'
    window same_unit as (partition by provider, account, mode, root_id, object_id, kind)
),
-- And what is booked in it.
paired as (
    select mixed.*,
        case when currency = unit_currency and wrong_currency is not null then 1 else 0 end as is_pair,
        sum(case when currency = wrong_currency then found_minor else 0 end) over same_unit as wrong_minor
    from mixed
    window same_unit as (partition by provider, account, mode, root_id, object_id, kind)
)
select
    'currency_mismatch' as kind, '' as cause, provider, account, mode, object_id, kind as effect, currency,
    cast(case when is_pair = 1 then expected_minor - found_minor else expected_minor end as bigint)
        as expected_minor,
    cast(case when is_pair = 1 then wrong_minor else found_minor end as bigint) as found_minor,
    '' as expected_state, '' as found_state
from paired
where is_pair = 1 or (expected_minor <> found_minor and (wrong_currency is null or currency <> wrong_currency))
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
