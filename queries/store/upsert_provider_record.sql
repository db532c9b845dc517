-- Keeps what the provider's list or look-up returned; the copy that was asked for later wins.
-- Relies on the primary key (provider, account, mode, stream, record_id).
-- A row that is missing from the answer was older than the copy that is kept. No answer is under way for ten
-- minutes (600,000,000 µs): a copy that seems so much newer was written under a clock that was wrong, and gives way.
-- The tuple of values is repeated for each row of a batch.
insert into provider_record (provider, account, mode, stream, record_id, created_us, fetched_at_us, body)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (provider, account, mode, stream, record_id) do update
set created_us = excluded.created_us, fetched_at_us = excluded.fetched_at_us, body = excluded.body
where excluded.fetched_at_us >= provider_record.fetched_at_us
  or excluded.fetched_at_us < provider_record.fetched_at_us - 600000000
returning record_id
