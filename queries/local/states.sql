-- What your books say of each payment: one row for each payment whose status changed in the window.
-- Rewrite it for your own table; the names of the columns are the contract.
--   provider, account, mode, object_id   as in effects.sql
--   status           your word; [local.status_map] in recon.toml maps it to ours
--   refunded_minor   refunded so far in minor units, or null
--   updated_at_us    last change, Unix microseconds
--   changed_by       may be left out; 'operator' marks a change made by hand, which is never undone
-- :from_us and :until_us are the window, [from, until). No row means that no status changed.
select
    provider,
    account,
    mode,
    object_id,
    status,
    refunded_minor,
    updated_at_us,
    changed_by
from object_state
where updated_at_us >= :from_us and updated_at_us < :until_us
