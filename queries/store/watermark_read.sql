-- How far a provider account is finished. Primary key: (provider, account, mode). Zero rows: never.
select until_us from watermark where provider = $1 and account = $2 and mode = $3
