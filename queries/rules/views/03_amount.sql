-- What each side has of an object, effect kind and currency, in total and inside the window.
--
-- `expected_minor` is the provider's, `found_minor` the books', `astray_minor` what is booked for it on another
-- payment. All are signed as they move the balance. `lines` counts rows of the books without those that undo
-- others. An event that announces the effect adds a line without money and without a currency.
create view amount as
select provider, account, mode, root_id, object_id, kind, currency,
    cast(sum(expected_minor) as bigint) as expected_minor,
    cast(sum(found_minor) as bigint) as found_minor,
    cast(sum(astray_minor) as bigint) as astray_minor,
    cast(sum(in_window * expected_minor) as bigint) as expected_in_minor,
    cast(sum(in_window * (found_minor + astray_minor)) as bigint) as found_in_minor,
    sum(lines) as lines, max(in_window) as in_window, max(is_announced) as is_announced,
    min(occurred_us) as occurred_us, min(booked_us) as first_booked_us, max(booked_us) as last_booked_us
from (
    select provider, account, mode, root_id, object_id, kind, currency, in_window,
        case when kind in ('credit', 'dispute_reinstated') then 1 else -1 end * amount_minor as expected_minor,
        0 as found_minor, 0 as astray_minor, 0 as lines, 0 as is_announced,
        occurred_at_us as occurred_us, cast(null as bigint) as booked_us
    from provider_effect
    union all
    select provider, account, mode, root_id, object_id, kind, currency, in_window,
        0, signed_minor, 0, case when corrects_effect_id = '' then 1 else 0 end, 0, null, applied_at_us
    from placed_row
    where is_astray = 0
    union all
    select provider, account, mode, root_id, object_id, kind, currency, in_window,
        0, 0, signed_minor, 0, 0, null, null
    from placed_row
    where is_astray = 1
    union all
    select provider, account, mode, root_id, object_id, tracks, '', 0, 0, 0, 0, 0, 1, null, null
    from provider_event
    where tracks not in ('', 'state')
) as sides
group by provider, account, mode, root_id, object_id, kind, currency;
