-- Gives the lease back. Primary key: name. Zero rows: somebody else took it, and keeps it.
delete from lease where name = $1 and holder = $2
returning name
