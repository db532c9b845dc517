-- Empties the bodies that came under a known event's id before $2; $1 is the empty body. Their hashes stay. Zero
-- rows: there are none.
update inbox_conflict
set body = $1
where received_at_us < $2 and length(body) > 0
returning provider, account, mode
