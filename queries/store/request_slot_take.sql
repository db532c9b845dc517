-- Reserves $6 µs of a limit's time for who asks, from now ($5) or from the end of what others hold. An end beyond $7 was
-- written by a clock that has been set back since: nobody holds it. Primary key. Always one row: where it begins.
insert into request_slot (provider, account, mode, endpoint, next_at_us)
select $1, $2, $3, $4, cast($5 as bigint) + cast($6 as bigint)
where true
on conflict (provider, account, mode, endpoint) do update
set next_at_us = cast($6 as bigint)
  + case when request_slot.next_at_us between $5 and $7 then request_slot.next_at_us else $5 end
returning next_at_us - cast($6 as bigint) as first_at_us
