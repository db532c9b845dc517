-- What listing, accepting and closing findings needs.

-- The finding as its last run saw it; empty until a run sees it again. Ids are JSON lists, because an id may hold any
-- letter; `amounts` is what an acceptance holds on to.
alter table finding add column cause text not null default '';
alter table finding add column severity text not null default '';
alter table finding add column root_id text not null default '';
alter table finding add column currency text not null default '';
alter table finding add column found_currency text not null default '';
alter table finding add column expected_minor bigint;
alter table finding add column found_minor bigint;
alter table finding add column difference_minor bigint;
alter table finding add column expected_state text not null default '';
alter table finding add column found_state text not null default '';
alter table finding add column event_ids text not null default '';
alter table finding add column effect_ids text not null default '';
alter table finding add column correction text not null default '';
alter table finding add column note text not null default '';
alter table finding add column amounts text not null default '';
-- Which of its lives it is in: one more each time it comes back. What was decided of an earlier one no longer counts.
alter table finding add column opening bigint not null default 1;
-- The run that no longer found it; empty while it is there.
alter table finding add column cleared_run text not null default '';
create index finding_object on finding (object_id);
create index finding_root on finding (root_id);

-- What persons did to a finding, and when runs saw it go and come back. Insert only. `run_id` is the run that saw it, or
-- the one that confirmed what a person closes; empty where a person closed on their own word.
create table finding_action (
    sequence bigint not null primary key,
    finding_id text not null,
    action text not null check (action in ('cleared', 'reopened', 'assign', 'accept', 'close')),
    opening bigint not null,
    owner text not null,
    until_us bigint,
    amounts text not null,
    run_id text not null,
    reason text not null,
    actor text not null,
    at_us bigint not null
);
create index finding_action_finding on finding_action (finding_id);

-- Who carried corrections out: one row for each batch of the chain. Insert only.
create table correction_actor (
    first_sequence bigint not null primary key,
    last_sequence bigint not null,
    actor text not null
);
create index correction_finding on correction (finding_id);
create index planned_correction_finding on planned_correction (finding_id);
