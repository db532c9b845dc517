-- What your books did: one row for each effect booked in the window. Rewrite it for your own table;
-- the names of the columns are the contract, their order and further columns do not matter.
--   effect_id           id of your row, never empty
--   provider, account, mode   as in recon.toml ('' is the platform account; 'live' or 'test')
--   object_id           the provider's id that your row has: charge, refund, dispute, payment intent,
--                       invoice or checkout session
--   kind                credit, refund, dispute_withdrawn, dispute_reinstated, fee or payout
--   amount_minor        whole minor units >= 0 (the kind gives the direction), or instead of it
--                       amount: decimal text such as '19.99', never a floating-point number
--   currency            ISO code
--   applied_at_us       when it was booked, Unix microseconds
--   event_id            the event that the row came from, or null
--   corrects_effect_id  the row that this one undoes (its amount is then negative), or null
-- :from_us and :until_us are the window, [from, until). No row means that nothing was booked.
select
    entry_id as effect_id,
    provider,
    account,
    mode,
    object_id,
    kind,
    amount_minor,
    currency,
    applied_at_us,
    event_id,
    corrects_entry_id as corrects_effect_id
from ledger_entry
where applied_at_us >= :from_us and applied_at_us < :until_us
