-- Who holds the lease. Primary key: name. Zero rows: nobody.
select holder, expires_at_us from lease where name = $1
