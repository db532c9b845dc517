-- The units (one object, one effect kind) of which a side has something: one row each, with the verdict and the
-- amounts in the currency that it is shown in. Most rules about money are a line of this view.
create view unit as
select provider, account, mode, root_id, object_id, kind, currency, verdict,
    expected_minor, found_minor, astray_minor, has_provider, has_local, has_event, unit_lines as lines,
    unit_occurred_us as occurred_us, unit_first_booked_us as first_booked_us, unit_last_booked_us as last_booked_us
from judged_amount
where currency = unit_currency;
