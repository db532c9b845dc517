-- Moves the end of a lease that is still held. Primary key: name. Zero rows: somebody else took it.
update lease set expires_at_us = $1 where name = $2 and holder = $3
returning name
