-- Finds effects that are booked in another currency than the provider's, even where the number is equal.
--
-- Proof: `provider_effect` and `local_effect` both have the object, and more than one currency among them.
-- One row has the provider's `currency`: there `expected_minor` is the provider's amount less what is booked in
-- the right currency, and `found_minor` is booked in the first currency that the provider has not, so the two are
-- never subtracted. Every other currency in which the sides differ is a row of its own, with both amounts in it.
--
-- Steps `astray` to `judged_unit` are the same text in every rule about money; read them once.
with
-- Local rows that name an event of another payment (and none of their own), and that payment.
astray as (
    select booked.provider, booked.account, booked.mode, booked.root_id, booked.kind, booked.effect_id,
        min(said.root_id) as home_root_id
    from local_effect as booked
    join provider_event as said
        on said.provider = booked.provider and said.account = booked.account and said.mode = booked.mode
        and said.event_id = booked.event_id and said.tracks = booked.kind
    where booked.corrects_effect_id = ''
    group by booked.provider, booked.account, booked.mode, booked.root_id, booked.kind, booked.effect_id
    having max(case when said.root_id = booked.root_id then 1 else 0 end) = 0
),
-- The object there that they belong to.
home as (
    select astray.provider, astray.account, astray.mode, astray.root_id, astray.kind, astray.effect_id,
        astray.home_root_id, min(said.object_id) as home_object_id
    from astray
    join local_effect as booked using (provider, account, mode, root_id, kind, effect_id)
    join provider_event as said
        on said.provider = booked.provider and said.account = booked.account and said.mode = booked.mode
        and said.event_id = booked.event_id and said.tracks = booked.kind and said.root_id = astray.home_root_id
    where booked.corrects_effect_id = ''
    group by astray.provider, astray.account, astray.mode, astray.root_id, astray.kind, astray.effect_id,
        astray.home_root_id
),
-- Every local row under the object that it counts for; a row that undoes another follows that row.
placed as (
    select booked.provider, booked.account, booked.mode,
        cast(coalesce(home.home_root_id, booked.root_id) as text) as root_id,
        cast(coalesce(home.home_object_id, booked.object_id) as text) as object_id,
        booked.kind, booked.currency, booked.in_window, booked.applied_at_us,
        booked.effect_id, booked.corrects_effect_id,
        booked.amount_minor * case when booked.kind in ('credit', 'dispute_reinstated') then 1 else -1 end
            as signed_minor,
        case when home.effect_id is null then 0 else 1 end as is_astray
    from local_effect as booked
    left join home
        on home.provider = booked.provider and home.account = booked.account and home.mode = booked.mode
        and home.root_id = booked.root_id and home.kind = booked.kind
        and home.effect_id
            = case when booked.corrects_effect_id = '' then booked.effect_id else booked.corrects_effect_id end
),
-- Both sides' signed totals per object, effect kind and currency, over all time and inside the window. Events
-- that announce an effect add a line without money.
amount as (
    select provider, account, mode, root_id, object_id, kind, currency,
        sum(expected_minor) as expected_minor, sum(found_minor) as found_minor,
        sum(astray_minor) as astray_minor, sum(lines) as lines,
        sum(in_window * expected_minor) as expected_in_minor,
        sum(in_window * (found_minor + astray_minor)) as found_in_minor,
        max(in_window) as in_window, max(is_announced) as is_announced
    from (
        select provider, account, mode, root_id, object_id, kind, currency, in_window,
            amount_minor * case when kind in ('credit', 'dispute_reinstated') then 1 else -1 end
                as expected_minor,
            0 as found_minor, 0 as astray_minor, 0 as lines, 0 as is_announced
        from provider_effect
        union all
        select provider, account, mode, root_id, object_id, kind, currency, in_window,
            0, (1 - is_astray) * signed_minor, is_astray * signed_minor,
            case when is_astray = 0 and corrects_effect_id = '' then 1 else 0 end, 0
        from placed
        union all
        select provider, account, mode, root_id, object_id, tracks, '', 0, 0, 0, 0, 0, 1
        from provider_event
        where tracks not in ('', 'state')
    ) as sides
    group by provider, account, mode, root_id, object_id, kind, currency
),
-- Beside each amount, what holds of its object and effect kind (its unit) as a whole.
unit as (
    select amount.*,
        max(case when expected_minor <> 0 then 1 else 0 end) over same_unit as has_provider,
        max(case when found_minor <> 0 then 1 else 0 end) over same_unit as has_local,
        max(case when astray_minor <> 0 then 1 else 0 end) over same_unit as has_astray,
        max(case when expected_minor <> found_minor then 1 else 0 end) over same_unit as differs,
        sum(case when expected_minor <> 0 or found_minor <> 0 then 1 else 0 end) over same_unit as currencies,
        sum(lines) over same_unit as unit_lines,
        max(is_announced) over same_unit as has_event,
        case when max(in_window) over same_unit + max(is_announced) over same_unit > 0 then 1 else 0 end
            as touches_window,
        coalesce(
            min(case when expected_minor <> 0 then currency end) over same_unit,
            min(case when found_minor <> 0 then currency end) over same_unit,
            min(case when astray_minor <> 0 then currency end) over same_unit
        ) as unit_currency,
        min(case when expected_in_minor <> found_in_minor then currency end) over same_unit as cut_currency
    from amount
    window same_unit as (partition by provider, account, mode, root_id, object_id, kind)
),
-- What a unit is: one thing only, and in this order, so that one cause gives one finding.
judged_unit as (
    select unit.*,
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
    from unit
),
-- Beside each amount the first currency that the books have and the provider has not.
mixed as (
    select judged_unit.*,
        min(case when expected_minor = 0 and found_minor <> 0 then currency end) over same_unit as wrong_currency
    from judged_unit
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
