-- Finds effects that both sides have, with the provider's date on one side of the cut-off and the booking's
-- date on the other: nobody's mistake, expected to clear in the next window. A booking and its undoing on
-- both sides of the cut-off are one too.
--
-- Proof: the totals of `provider_effect` and `local_effect` over all time are equal in every currency, and
-- those with `in_window` = 1, which are the amounts shown, are not. Signed as they move the balance.
select
    'timing_difference' as kind, 'cut_off' as cause, provider, account, mode, object_id, kind as effect, currency,
    expected_in_minor as expected_minor, found_in_minor as found_minor, '' as expected_state, '' as found_state
from judged_amount
where verdict = 'cut' and currency = cut_currency
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
