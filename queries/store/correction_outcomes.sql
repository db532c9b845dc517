-- What became of corrections so far. Unique key: (correction_id, outcome). Zero rows: never tried.
select correction_id, outcome from correction where correction_id in (values ($1))
