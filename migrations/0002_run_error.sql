-- Why a run did not see everything, on one line and without secrets. Empty where it saw everything, still
-- runs, or was killed.
alter table run add column error text not null default '';
