-- Each dead letter is told once, whatever the clocks of those who write and tell it say. Above 0: it was told then, Unix
-- µs; 0: it was not; below: somebody is at telling it.
alter table inbox_event add column dead_told_us bigint not null default 0;

-- What was told before this column was there is not told again.
update inbox_event
set dead_told_us = completed_at_us
where status = 'dead' and completed_at_us <= (select told_at_us from notification where kind = 'dead_letter');

create index inbox_event_dead_untold on inbox_event (completed_at_us) where status = 'dead' and dead_told_us <= 0;
