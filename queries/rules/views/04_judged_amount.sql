-- Each amount beside what holds of its unit. A unit is one object and one effect kind in all currencies: the
-- refund re_1, the fee of the charge ch_1. It has one verdict, the first of these that is true, so that one
-- cause gives one finding:
--
-- outside        nothing of it happened in the window
-- misattributed  something of it is booked on another payment
-- cut            both sides agree over all time, and not inside the window
-- agreed         both sides agree
-- missing        only the provider has it
-- orphan         only the books have it
-- mixed          both have it, in more than one currency
-- differing      both have it, in one currency, with other totals
create view judged_amount as
with
described as (
    select amount.*,
        max(case when expected_minor <> 0 then 1 else 0 end) over unit as has_provider,
        max(case when found_minor <> 0 then 1 else 0 end) over unit as has_local,
        max(case when astray_minor <> 0 then 1 else 0 end) over unit as has_astray,
        max(case when expected_minor <> found_minor then 1 else 0 end) over unit as differs,
        sum(case when expected_minor <> 0 or found_minor <> 0 then 1 else 0 end) over unit as currencies,
        cast(sum(lines) over unit as bigint) as unit_lines,
        max(is_announced) over unit as has_event,
        max(in_window + is_announced) over unit as touches_window,
        min(occurred_us) over unit as unit_occurred_us,
        min(first_booked_us) over unit as unit_first_booked_us,
        max(last_booked_us) over unit as unit_last_booked_us,
        -- The currency in which the unit is shown: the provider's, else that of the books.
        coalesce(
            min(case when expected_minor <> 0 then currency end) over unit,
            min(case when found_minor <> 0 then currency end) over unit,
            min(case when astray_minor <> 0 then currency end) over unit
        ) as unit_currency,
        -- The first currency that does not tie out inside the window.
        min(case when expected_in_minor <> found_in_minor then currency end) over unit as cut_currency
    from amount
    window unit as (partition by provider, account, mode, root_id, object_id, kind)
)
select described.*,
    case
        when touches_window = 0 then 'outside'
        when has_astray = 1 then 'misattributed'
        when differs = 0 and cut_currency is not null then 'cut'
        when differs = 0 then 'agreed'
        when has_local = 0 then 'missing'
        when has_provider = 0 then 'orphan'
        when currencies > 1 then 'mixed'
        else 'differing'
    end as verdict
from described;
