-- The demonstration of recovery: whoever does {moment} stays in the middle of its transaction. It first writes more
-- than a connection keeps in memory (store/mod.rs, CACHE_KIB), so that what it wrote before is seen in the write-ahead
-- log's file, uncommitted; then it counts for about a minute. {moment} is put in by the code. Answers no rows.
create trigger recovery_hold after {moment}
begin
    insert into recovery_ballast (filler) select zeroblob(1000000) from recovery_endless limit 96;
    select count(*) from (select 1 from recovery_endless limit 1000000000);
end
