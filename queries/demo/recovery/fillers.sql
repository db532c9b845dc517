-- The demonstration of recovery: what a hold (recovery/hold.sql) fills a transaction with, and counts by. Both are
-- in the demonstration's own store only, and are dropped at its end. Answers no rows.
create table recovery_ballast (filler blob not null);
create view recovery_endless as
    with recursive numbers (number) as (select 1 union all select number + 1 from numbers)
    select number from numbers
