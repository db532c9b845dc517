-- The server's clock as Unix µs: all hosts of a store share it. Lock: none. Always one row.
select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as now_us
