-- What became of a payment's wanted status events that no newer event in the inbox has overtaken, one row per
-- payment that has any. `outcome` is the first that is true: `in_flight` (the provider still tries), `dead_letter`,
-- `parked`, `pending_too_long` (it waits in the inbox), `missed` (it never came), `dealt_with`.
create view status_delivery as
select provider, account, mode, root_id,
    case
        when count(*) filter (where held_as = '' and settled = 0) > 0 then 'in_flight'
        when count(*) filter (where held_as = 'dead') > 0 then 'dead_letter'
        when count(*) filter (where held_as = 'parked') > 0 then 'parked'
        when count(*) filter (where held_as = 'received') > 0 then 'pending_too_long'
        when count(*) filter (where held_as = '') > 0 then 'missed'
        else 'dealt_with'
    end as outcome
from (
    select heard_event.*,
        max(case when held_as <> '' then created_us end) over (
            partition by provider, account, mode, root_id
        ) as newest_held_us
    from heard_event
) as told
where tracks = 'state' and wanted = 1 and (newest_held_us is null or newest_held_us <= created_us)
group by provider, account, mode, root_id;
