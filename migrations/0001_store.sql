-- recon's own tables. Instants are integers (Unix µs, suffix _us); key columns are NOT NULL and
-- compared byte by byte. Statements keep to what SQLite and PostgreSQL share.

create table inbox_event (
    provider text not null,
    account text not null,
    mode text not null,
    event_id text not null,
    event_type text not null,
    body blob,
    body_sha256 text not null,
    received_at_us bigint not null,
    last_delivery_at_us bigint not null,
    deliveries bigint not null default 1,
    status text not null check (status in ('received', 'applied', 'superseded', 'ignored', 'parked', 'dead')),
    attempts bigint not null default 0,
    next_attempt_at_us bigint not null default 0,
    last_error text not null default '',
    reason text not null default '',
    primary key (provider, account, mode, event_id)
);
create index inbox_event_received on inbox_event (received_at_us);

create table applied_event (
    provider text not null,
    account text not null,
    mode text not null,
    event_id text not null,
    applied_at_us bigint not null,
    run_id text not null,
    primary key (provider, account, mode, event_id)
);

-- Insert only. A row is never updated and never deleted; a mistake is undone by a compensating row.
create table ledger_entry (
    entry_id text not null primary key,
    provider text not null,
    account text not null,
    mode text not null,
    effect_key text not null,
    object_id text not null,
    kind text not null check (kind in ('credit', 'refund', 'dispute_withdrawn', 'dispute_reinstated', 'fee', 'payout')),
    amount_minor bigint not null,
    currency text not null,
    occurred_at_us bigint not null,
    applied_at_us bigint not null,
    event_id text not null default '',
    corrects_entry_id text not null default '',
    run_id text not null default '',
    reason text not null default '',
    unique (provider, account, mode, effect_key)
);
create index ledger_entry_applied on ledger_entry (applied_at_us);
create index ledger_entry_object on ledger_entry (object_id);
create index ledger_entry_corrects on ledger_entry (corrects_entry_id) where corrects_entry_id <> '';

create table object_state (
    provider text not null,
    account text not null,
    mode text not null,
    object_id text not null,
    status text not null check (status in ('pending', 'failed', 'canceled', 'paid', 'partially_refunded', 'refunded', 'disputed', 'dispute_lost')),
    refunded_minor bigint,
    provider_time_us bigint not null,
    updated_at_us bigint not null,
    changed_by text not null default '',
    primary key (provider, account, mode, object_id)
);
create index object_state_updated on object_state (updated_at_us);

create table outbox_message (
    idempotency_key text not null primary key,
    provider text not null,
    account text not null,
    mode text not null,
    object_id text not null,
    topic text not null,
    body blob not null,
    created_at_us bigint not null,
    sent_at_us bigint,
    suppressed_reason text not null default ''
);

-- What the provider's lists returned, bytes as received.
create table provider_record (
    provider text not null,
    account text not null,
    mode text not null,
    stream text not null,
    record_id text not null,
    created_us bigint not null,
    fetched_at_us bigint not null,
    body blob not null,
    primary key (provider, account, mode, stream, record_id)
);
create index provider_record_created on provider_record (provider, account, mode, stream, created_us, record_id);
create index provider_record_id on provider_record (record_id);

-- One row per paged time range and run: the proof of coverage. A closed slice and its rows are one commit; a
-- run that resumes a killed one takes its slices over.
create table slice (
    provider text not null,
    account text not null,
    mode text not null,
    stream text not null,
    from_us bigint not null,
    until_us bigint not null,
    status text not null check (status in ('open', 'closed', 'gap')),
    pages bigint not null default 0,
    records bigint not null default 0,
    cause text not null default '',
    closed_at_us bigint,
    run_id text not null,
    primary key (provider, account, mode, stream, run_id, from_us, until_us)
);

create table alias (
    provider text not null,
    account text not null,
    mode text not null,
    alias_id text not null,
    root_id text not null,
    is_part bigint not null,
    primary key (provider, account, mode, alias_id)
);
create index alias_root on alias (root_id);

create table run (
    run_id text not null primary key,
    started_at_us bigint not null,
    finished_at_us bigint,
    from_us bigint not null,
    until_us bigint not null,
    time_zone text not null,
    basis text not null,
    outcome text not null default 'started' check (outcome in ('started', 'clean', 'findings', 'incomplete')),
    findings bigint not null default 0,
    report_dir text not null default ''
);

-- Provider time of finished work, one row per provider account.
create table watermark (
    provider text not null,
    account text not null,
    mode text not null,
    until_us bigint not null,
    run_id text not null,
    primary key (provider, account, mode)
);

create table finding (
    finding_id text not null primary key,
    kind text not null,
    provider text not null,
    account text not null,
    mode text not null,
    object_id text not null,
    occurred_at_us bigint not null,
    first_seen_us bigint not null,
    last_seen_us bigint not null,
    cleared_us bigint,
    status text not null check (status in ('new', 'open', 'reopened', 'cleared', 'accepted')),
    run_id text not null
);

-- Chained by hash: hash = sha256(previous hash + this row). Insert only. A correction that could not
-- be carried out may be tried again, but no outcome of it is ever recorded twice.
create table correction (
    sequence bigint not null primary key,
    correction_id text not null,
    plan_run_id text not null,
    finding_id text not null,
    action text not null,
    effect_key text not null,
    outcome text not null,
    applied_at_us bigint not null,
    previous_hash text not null,
    hash text not null,
    unique (correction_id, outcome)
);

create table lease (
    name text not null primary key,
    holder text not null,
    expires_at_us bigint not null
);

-- The corrections that a run planned, as written to its plan.csv, with what carrying them out needs.
-- Lists are joined by `|`.
create table planned_correction (
    correction_id text not null primary key,
    run_id text not null,
    finding_id text not null,
    provider text not null,
    account text not null,
    mode text not null,
    action text not null check (action in ('replay_event', 'apply_effect', 'reverse_entry', 'set_state')),
    effect_key text not null,
    object_id text not null,
    root_id text not null,
    kind text not null,
    currency text not null,
    amount_minor bigint not null,
    target_state text not null,
    reason text not null,
    allowed_by text not null,
    event_ids text not null,
    effect_ids text not null,
    occurred_at_us bigint not null
);
create index planned_correction_run on planned_correction (run_id);
