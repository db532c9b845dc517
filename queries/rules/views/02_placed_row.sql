-- Every row of the books under the payment and object that it counts for, signed as it moves the balance.
--
-- A row that names an event of another payment, and none of its own, belongs there: it is astray
-- (`is_astray` = 1), and stands here under the object that the event is about. A row that undoes another
-- (`corrects_effect_id`) goes wherever that one belongs.
create view placed_row as
with
-- Rows beside the events that they name, those of the first payment first.
named as (
    select booked.provider, booked.account, booked.mode, booked.root_id, booked.kind, booked.effect_id,
        said.root_id as home_root_id, said.object_id as home_object_id,
        max(case when said.root_id = booked.root_id then 1 else 0 end) over same_row as is_at_home,
        row_number() over (same_row order by said.root_id, said.object_id) as place
    from local_effect as booked
    join provider_event as said
        on said.provider = booked.provider and said.account = booked.account and said.mode = booked.mode
        and said.event_id = booked.event_id and said.tracks = booked.kind
    where booked.corrects_effect_id = ''
    window same_row as (
        partition by booked.provider, booked.account, booked.mode, booked.root_id, booked.kind, booked.effect_id
    )
),
astray as (
    select provider, account, mode, root_id, kind, effect_id, home_root_id, home_object_id
    from named
    where is_at_home = 0 and place = 1
)
select booked.provider, booked.account, booked.mode,
    cast(coalesce(astray.home_root_id, booked.root_id) as text) as root_id,
    cast(coalesce(astray.home_object_id, booked.object_id) as text) as object_id,
    booked.kind, booked.currency, booked.in_window, booked.applied_at_us,
    booked.effect_id, booked.corrects_effect_id,
    case when booked.kind in ('credit', 'dispute_reinstated') then 1 else -1 end * booked.amount_minor
        as signed_minor,
    case when astray.effect_id is null then 0 else 1 end as is_astray
from local_effect as booked
left join astray
    on astray.provider = booked.provider and astray.account = booked.account and astray.mode = booked.mode
    and astray.root_id = booked.root_id and astray.kind = booked.kind
    and astray.effect_id
        = case when booked.corrects_effect_id = '' then booked.effect_id else booked.corrects_effect_id end;
