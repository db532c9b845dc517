-- Payments with an effect that one side lacks or that is booked elsewhere: a status that lags there follows from
-- that finding and is none of its own.
create view explained_payment as
select distinct provider, account, mode, root_id
from unit
where verdict in ('misattributed', 'missing', 'orphan');
