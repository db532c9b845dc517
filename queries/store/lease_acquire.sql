-- Takes the lease when nobody holds it, or when its holder let it run out ($5 is now), or when its end lies beyond $6,
-- further ahead than any holder writes it (the clock was set back), or when the holder named as gone ($4) still stands
-- there. Primary key: name. Zero rows: somebody else holds it.
insert into lease (name, holder, expires_at_us)
values ($1, $2, $3)
on conflict (name) do update set holder = excluded.holder, expires_at_us = excluded.expires_at_us
where lease.holder = $4 or lease.expires_at_us <= $5 or lease.expires_at_us > $6
returning holder
