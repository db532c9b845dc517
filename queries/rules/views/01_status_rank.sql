-- The statuses of a payment in the order of its life. Where two records of one payment disagree, the higher
-- one counts. Up to rank 2 nothing was paid.
create view status_rank as
select 'pending' as status, 0 as status_rank
union all select 'failed', 1
union all select 'canceled', 2
union all select 'paid', 3
union all select 'partially_refunded', 4
union all select 'refunded', 5
union all select 'disputed', 6
union all select 'dispute_lost', 7;
