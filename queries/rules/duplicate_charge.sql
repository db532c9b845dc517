-- Finds business intents that the customer paid more than once: several successful charges at the provider for
-- one invoice, payment intent or configured `intent`, with one amount. Charges that were given back in full do
-- not count, by refunds or by disputes that stand; these are set against a payment's smallest charges first (of
-- equal ones the latest), as far as they cover them whole.
--
-- Proof: `provider_effect` rows of kind `credit` with one `intent`, one of them inside the window. The object is
-- the latest charge; `expected_minor` is one charge, `found_minor` all of them. The books play no part.
-- Charges of one intent with different amounts are for a person (`needs_review`) and no row here.
--
with
given_back as (
    select provider, account, mode, root_id, currency,
        sum(case kind when 'dispute_reinstated' then -amount_minor else amount_minor end) as amount_minor
    from provider_effect
    where kind in ('refund', 'dispute_withdrawn', 'dispute_reinstated')
    group by provider, account, mode, root_id, currency
),
-- Each charge with the total of its payment's charges from the smallest up to it.
charge as (
    select provider, account, mode, root_id, object_id, intent, currency, amount_minor, occurred_at_us, in_window,
        sum(amount_minor) over (
            partition by provider, account, mode, root_id, currency
            order by amount_minor, occurred_at_us desc, object_id desc
            rows between unbounded preceding and current row
        ) as up_to_it_minor
    from provider_effect
    where kind = 'credit'
),
kept as (
    select charge.*,
        row_number() over (
            partition by charge.provider, charge.account, charge.mode, charge.intent, charge.currency
            order by charge.occurred_at_us desc, charge.object_id desc
        ) as from_last
    from charge
    left join given_back using (provider, account, mode, root_id, currency)
    where charge.intent <> '' and charge.up_to_it_minor > coalesce(given_back.amount_minor, 0)
)
select
    'duplicate_charge' as kind, '' as cause, provider, account, mode,
    max(case when from_last = 1 then object_id end) as object_id, '' as effect, currency,
    cast(min(amount_minor) as bigint) as expected_minor, cast(sum(amount_minor) as bigint) as found_minor,
    '' as expected_state, '' as found_state
from kept
group by provider, account, mode, intent, currency
having count(*) > 1 and min(amount_minor) = max(amount_minor) and max(in_window) = 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
