-- Drops raw bodies and headers of events that have ended well and were received before $1, at most $2 at a time.
-- Keys, hashes and counts stay for ever. Zero rows: there are none.
update inbox_event
set body = null, headers = ''
where (provider, account, mode, event_id) in (
    select provider, account, mode, event_id
    from inbox_event
    where received_at_us < $1 and body is not null
      and status in ('applied', 'superseded', 'ignored')
    order by received_at_us
    limit $2
)
returning provider, account, mode
