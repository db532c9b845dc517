-- Moves a watermark forward. Primary key: (provider, account, mode). Zero rows: it stands further on
-- already, and stays there.
insert into watermark (provider, account, mode, until_us, run_id)
values ($1, $2, $3, $4, $5)
on conflict (provider, account, mode) do update set until_us = excluded.until_us, run_id = excluded.run_id
where watermark.until_us < excluded.until_us
returning until_us
