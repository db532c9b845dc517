-- Finds effects that are booked in another currency than the provider's, even where the number is equal.
--
-- Proof: `provider_effect` and `local_effect` both have the object, and more than one currency among them.
-- `currency` is the provider's. `expected_minor` is the provider's amount less what is booked in the right
-- currency; `found_minor` is booked in the first other currency, so the two are never subtracted.
--
-- Steps `astray` to `unit` are the same text in every rule about money; read them once.
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
        coalesce(home.home_root_id, booked.root_id) as root_id,
        coalesce(home.home_object_id, booked.object_id) as object_id,
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
-- Both sides' signed totals per object, effect kind and currency: over all time, and inside the window.
amount as (
    select provider, account, mode, root_id, object_id, kind, currency,
        sum(expected_minor) as expected_minor, sum(found_minor) as found_minor,
        sum(astray_minor) as astray_minor, sum(lines) as lines, max(in_window) as in_window,
        sum(in_window * expected_minor) as expected_in_minor,
        sum(in_window * (found_minor + astray_minor)) as found_in_minor
    from (
        select provider, account, mode, root_id, object_id, kind, currency, in_window,
            amount_minor * case when kind in ('credit', 'dispute_reinstated') then 1 else -1 end
                as expected_minor,
            0 as found_minor, 0 as astray_minor, 0 as lines
        from provider_effect
        union all
        select provider, account, mode, root_id, object_id, kind, currency, in_window,
            0, (1 - is_astray) * signed_minor, is_astray * signed_minor,
            case when is_astray = 0 and corrects_effect_id = '' then 1 else 0 end
        from placed
    ) as sides
    group by provider, account, mode, root_id, object_id, kind, currency
),
-- Events that announce an effect, per object and effect kind; all of them lie inside the window.
announced as (
    select distinct provider, account, mode, root_id, object_id, tracks as kind
    from provider_event
    where tracks not in ('', 'state')
),
-- One row per object and effect kind that touches the window: which sides have it, and whether they agree.
unit as (
    select amount.provider, amount.account, amount.mode, amount.root_id, amount.object_id, amount.kind,
        max(case when expected_minor <> 0 then 1 else 0 end) as has_provider,
        max(case when found_minor <> 0 then 1 else 0 end) as has_local,
        max(case when astray_minor <> 0 then 1 else 0 end) as has_astray,
        max(case when expected_minor <> found_minor then 1 else 0 end) as differs,
        sum(case when expected_minor <> 0 or found_minor <> 0 then 1 else 0 end) as currencies,
        sum(lines) as lines,
        coalesce(
            min(case when expected_minor <> 0 then currency end),
            min(case when found_minor <> 0 then currency end),
            min(case when astray_minor <> 0 then currency end)
        ) as currency,
        min(case when expected_in_minor <> found_in_minor then currency end) as cut_currency
    from amount
    left join announced using (provider, account, mode, root_id, object_id, kind)
    group by amount.provider, amount.account, amount.mode, amount.root_id, amount.object_id, amount.kind
    having max(amount.in_window) = 1 or max(announced.kind) is not null
),
-- The first other currency that the books have.
other as (
    select unit.provider, unit.account, unit.mode, unit.root_id, unit.object_id, unit.kind,
        min(amount.currency) as currency
    from unit
    join amount using (provider, account, mode, root_id, object_id, kind)
    where amount.currency <> unit.currency and amount.found_minor <> 0
    group by unit.provider, unit.account, unit.mode, unit.root_id, unit.object_id, unit.kind
)
select
    'currency_mismatch' as kind, '' as cause, unit.provider, unit.account, unit.mode, unit.object_id,
    unit.kind as effect, unit.currency,
    cast(amount.expected_minor - amount.found_minor as bigint) as expected_minor,
    cast(coalesce(wrong.found_minor, 0) as bigint) as found_minor,
    '' as expected_state, '' as found_state
from unit
join amount using (provider, account, mode, root_id, object_id, kind, currency)
left join other using (provider, account, mode, root_id, object_id, kind)
left join amount as wrong using (provider, account, mode, root_id, object_id, kind, currency)
where unit.has_astray = 0 and unit.has_provider = 1 and unit.has_local = 1 and unit.differs = 1
    and unit.currencies > 1
order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
