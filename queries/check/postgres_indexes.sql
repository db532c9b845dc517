-- The unique indexes of the table $2 in the schema $1, one row for each of their parts, in order. Columns that an
-- index only includes are no part of it. No row means that nothing is unique.
select
    cast(ic.relname as text) as index_name,
    pg_catalog.pg_get_expr(i.indpred, i.indrelid) as condition,
    cast(case when i.indisvalid and i.indisready then 1 else 0 end as bigint) as is_valid,
    cast(case when i.indimmediate then 0 else 1 end as bigint) as is_deferrable,
    coalesce(pg_catalog.to_jsonb(i) ->> 'indnullsnotdistinct', 'false') as are_nulls_alike,
    cast(a.attname as text) as column_name,
    cast(co.collname as text) as collation_name,
    cast(case when co.oid is null or co.collisdeterministic then 1 else 0 end as bigint) as is_deterministic,
    pg_catalog.pg_get_indexdef(i.indexrelid) as made_by
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_class ic on ic.oid = i.indexrelid
cross join lateral generate_series(0, i.indnkeyatts - 1) part (place)
left join pg_catalog.pg_attribute a
    on a.attrelid = i.indrelid and a.attnum = i.indkey[part.place] and a.attnum > 0
left join pg_catalog.pg_collation co on co.oid = i.indcollation[part.place]
where n.nspname = cast($1 as text) and c.relname = cast($2 as text) and i.indisunique
order by ic.relname, part.place
