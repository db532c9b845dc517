-- What is left of each row of the books of a differing unit, after what undoes it.
--
-- Where a row id is repeated, what undoes it is taken off its latest copy. A row that undoes one that is not
-- there stands for itself.
create view differing_row as
with
-- Rows beside all that name the same row id; those that undo come last.
tied as (
    select placed_row.provider, placed_row.account, placed_row.mode, placed_row.root_id, placed_row.object_id,
        placed_row.kind, placed_row.currency, placed_row.effect_id, placed_row.applied_at_us,
        placed_row.signed_minor, unit.lines, unit.expected_minor,
        case when corrects_effect_id = '' then 0 else 1 end as is_undoing,
        min(case when corrects_effect_id = '' then 0 else 1 end) over same_id as is_original_gone,
        coalesce(sum(case when corrects_effect_id = '' then 0 else signed_minor end) over same_id, 0)
            as undone_minor,
        row_number() over (
            same_id
            order by case when corrects_effect_id = '' then 0 else 1 end, applied_at_us desc, signed_minor desc
        ) as place
    from placed_row
    join unit using (provider, account, mode, root_id, object_id, kind, currency)
    where unit.verdict = 'differing' and placed_row.is_astray = 0
    window same_id as (
        partition by provider, account, mode, root_id, object_id, kind, currency,
            case when corrects_effect_id = '' then effect_id else corrects_effect_id end
    )
),
net as (
    select tied.*,
        case
            when is_original_gone = 1 then signed_minor
            when is_undoing = 1 then 0
            when place = 1 then signed_minor + undone_minor
            else signed_minor
        end as net_minor
    from tied
)
select provider, account, mode, root_id, object_id, kind, currency, effect_id, applied_at_us, signed_minor, lines,
    expected_minor, net_minor
from net
where net_minor <> 0;
