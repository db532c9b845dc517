-- The columns of the table $2 in the schema $1: type, length, whether null is allowed, and how texts are told apart.
-- A domain is looked at as what it is made of. No row means that there is no such table.
select
    cast(a.attname as text) as column_name,
    pg_catalog.format_type(a.atttypid, a.atttypmod) as type_name,
    cast(coalesce(base.typname, t.typname) as text) as base_name,
    cast(coalesce(base.typcategory, t.typcategory) as text) as category,
    cast(case when base.oid is null then a.atttypmod else t.typtypmod end as bigint) as modifier,
    cast(case when a.attnotnull or t.typnotnull then 0 else 1 end as bigint) as is_nullable,
    cast(co.collname as text) as collation_name,
    cast(case when co.collisdeterministic then 1 else 0 end as bigint) as is_deterministic
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_type t on t.oid = a.atttypid
left join pg_catalog.pg_type base on base.oid = t.typbasetype and t.typtype = 'd'
left join pg_catalog.pg_collation co on co.oid = a.attcollation
where n.nspname = cast($1 as text) and c.relname = cast($2 as text) and a.attnum > 0 and not a.attisdropped
order by a.attnum
