-- Deliveries that were refused before anything was stored, by provider, on the UTC days that begin from $1 to before
-- $2. Zero rows: none was refused.
select provider, cast(sum(deliveries) as bigint) as deliveries
from refused_delivery
where day_us >= $1 and day_us < $2
group by provider
order by provider
