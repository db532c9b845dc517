-- Keeps whether a payment was asked for whole, and when; the latest run's word wins. Key: payment_asked's primary
-- key. Zero rows are impossible.
insert into payment_asked (provider, account, mode, root_id, is_whole, asked_at_us)
values ($1, $2, $3, $4, $5, $6)
on conflict (provider, account, mode, root_id)
do update set is_whole = excluded.is_whole, asked_at_us = excluded.asked_at_us
returning root_id
