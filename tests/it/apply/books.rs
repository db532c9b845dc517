//! A store in a temporary folder, and what the tests look at in it.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

use crate::postgres::Place;
use recon::apply::{Aliases, Answer, Effect, apply_once};
use recon::commands::apply::{AskProvider, Fetched, Tally, Work, carry_out};
use recon::config::{Secret, Settings, Side};
use recon::correction::{Correction, PlanContext, plan};
use recon::findings::{Action, Finding, Kind, Severity};
use recon::gather::{ExpectedEffect, Standing};
use recon::record::{EffectKey, EffectKind, EventKey, Scope, Status, Window};
use recon::report::plan_csv;
use recon::store::runs::{self, Run, RunOutcome};
use recon::store::{Access, Store, ledger, plans};
use sqlx::Row;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// When the run of these tests began, Unix µs.
pub const RUN_STARTED_US: i64 = 1_000_000_000;
/// When corrections are carried out.
pub const NOW_US: i64 = 2_000_000_000;
pub const RUN_ID: &str = "run_1";

pub struct Books {
    pub store: Store,
    pub url: String,
    pub dir: tempfile::TempDir,
    _place: Place,
}

pub fn scope() -> Scope {
    Scope::new("stripe", "", "live")
}

pub fn effect(kind: EffectKind, object_id: &str, amount_minor: i64) -> Effect {
    Effect {
        kind,
        object_id: object_id.into(),
        aliases: Aliases::default(),
        amount_minor,
        currency: "usd".into(),
        occurred_at_us: 7_000_000,
        applied_at_us: NOW_US,
        corrects_entry_id: String::new(),
        run_id: String::new(),
        reason: "live".into(),
    }
}

pub fn event(event_id: &str) -> EventKey {
    EventKey { scope: scope(), event_id: event_id.into() }
}

pub fn finding(kind: Kind, action: Action, effect: EffectKind, object_id: &str) -> Finding {
    Finding {
        kind,
        cause: String::new(),
        severity: Severity::Critical,
        scope: scope(),
        object_id: object_id.into(),
        root_id: format!("pi_of_{object_id}"),
        effect: Some(effect),
        event_ids: Vec::new(),
        effect_ids: Vec::new(),
        currency: "usd".into(),
        found_currency: String::new(),
        explains: Vec::new(),
        target_state: None,
        expected_minor: None,
        found_minor: None,
        expected_state: None,
        found_state: None,
        occurred_at_us: 7_000_000,
        judged_at_us: 7_000_000,
        action,
        note: String::new(),
    }
}

pub fn missed(object_id: &str, amount: i64) -> Finding {
    Finding {
        event_ids: vec![format!("evt_of_{object_id}")],
        expected_minor: Some(amount),
        ..finding(Kind::MissedEvent, Action::ReplayEvent, EffectKind::Credit, object_id)
    }
}

pub fn stale(object_id: &str, status: Status) -> Finding {
    Finding {
        effect: None,
        currency: String::new(),
        root_id: object_id.into(),
        expected_state: Some(status),
        ..finding(Kind::StaleState, Action::SetState, EffectKind::Credit, object_id)
    }
}

/// A provider that has every effect as planned, and says this of every status.
pub struct AsPlanned(pub Option<Fetched>);

impl AskProvider for AsPlanned {
    async fn status(&self, _: &Scope, _: &str) -> anyhow::Result<Option<Fetched>> {
        Ok(self.0)
    }

    async fn standings(&self, _: &Scope, expected: &[ExpectedEffect]) -> anyhow::Result<Vec<Standing>> {
        Ok(vec![Standing::AsExpected; expected.len()])
    }
}

/// A provider that says nothing of statuses.
pub const NO_STATUS: AsPlanned = AsPlanned(None);

impl Books {
    pub async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::new(Place::asked_for(), dir.path());
        let url = place.url();
        let store = Store::open(&url, Access::ReadWrite).await.unwrap();
        let books = Self { store, url, dir, _place: place };
        books.start_run(RUN_ID, RUN_STARTED_US).await;
        books
    }

    pub async fn start_run(&self, run_id: &str, started_at_us: i64) {
        runs::start(&self.store, &run(run_id, started_at_us)).await.unwrap();
    }

    pub async fn execute(&self, sql: &'static str) {
        sqlx::query(sql).execute(self.store.pool()).await.unwrap();
    }

    pub async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query(sql).fetch_one(self.store.pool()).await.unwrap().get(0)
    }

    pub async fn text(&self, sql: &'static str) -> String {
        sqlx::query(sql).fetch_one(self.store.pool()).await.unwrap().get(0)
    }

    /// The event through the live path.
    pub async fn live(&self, event_id: &str, object_id: &str, amount_minor: i64) -> Answer {
        self.book(&[event(event_id)], &effect(EffectKind::Credit, object_id, amount_minor)).await
    }

    pub async fn book(&self, events: &[EventKey], effect: &Effect) -> Answer {
        let key = EffectKey::of(&scope(), effect.kind, &effect.object_id);
        let mut tx = self.store.begin_write().await.unwrap();
        let answer = apply_once(&mut tx, events, &key, effect).await.unwrap();
        tx.commit().await.unwrap();
        answer
    }

    /// An entry that somebody else booked under a key of his own.
    pub async fn import(&self, entry_id: &str, object_id: &str, amount_minor: i64, applied_at_us: i64) {
        let sql = "insert into ledger_entry (entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor,
                   currency, occurred_at_us, applied_at_us) values ($1, 'stripe', '', 'live', $2, $3, 'credit', $4, 'usd', 5, $5)";
        let query = sqlx::query(sql).bind(entry_id).bind(format!("import:{entry_id}")).bind(object_id);
        query.bind(amount_minor).bind(applied_at_us).execute(self.store.pool()).await.unwrap();
    }

    /// What a run read from the provider's list of events.
    pub async fn listed(&self, event_id: &str, created_us: i64) {
        let sql = "insert into provider_record values ('stripe', '', 'live', 'events', $1, $2, 0, $3)";
        let body = format!(r#"{{"id":"{event_id}","type":"charge.succeeded"}}"#).into_bytes();
        sqlx::query(sql).bind(event_id).bind(created_us).bind(body).execute(self.store.pool()).await.unwrap();
    }

    pub async fn state(&self, object_id: &str, status: Status, updated_at_us: i64, changed_by: &str) {
        let sql = "insert into object_state values ('stripe', '', 'live', $1, $2, null, 5, $3, $4)";
        let query =
            sqlx::query(sql).bind(object_id).bind(status.as_str()).bind(updated_at_us).bind(changed_by);
        query.execute(self.store.pool()).await.unwrap();
    }

    pub async fn plan(&self, run_id: &str, findings: &[Finding]) -> Vec<Correction> {
        let ids: BTreeSet<&str> = findings.iter().flat_map(|f| &f.effect_ids).map(String::as_str).collect();
        let mut tx = self.store.begin_write().await.unwrap();
        let entry_amounts = ledger::entry_amounts(&mut tx, &ids).await.unwrap();
        let auto = BTreeSet::from([Kind::MissedEvent]);
        let rows = plan(findings, PlanContext { run_id, auto: &auto, entry_amounts: &entry_amounts });
        plans::save_plan(&mut tx, run_id, &rows).await.unwrap();
        tx.commit().await.unwrap();
        rows
    }

    pub fn work(&self) -> Work<'_> {
        Work {
            store: &self.store,
            run_id: RUN_ID,
            run_started_us: RUN_STARTED_US,
            now_us: NOW_US,
            inbox_is_ours: true,
            keeps_messages: false,
            lease: None,
        }
    }

    pub async fn carry_out(&self, rows: &[Correction]) -> Tally {
        carry_out(self.work(), rows, &NO_STATUS).await.unwrap()
    }

    pub fn plan_file(&self, rows: &[[String; 10]]) -> PathBuf {
        let path = self.dir.path().join("plan.csv");
        let mut writer = csv::Writer::from_path(&path).unwrap();
        writer.write_record(plan_csv::COLUMNS.map(|column| column.name)).unwrap();
        for row in rows {
            writer.write_record(row).unwrap();
        }
        writer.flush().unwrap();
        path
    }

    /// Every row of every table, so that "nothing was written" can be said of all of them at once.
    pub async fn everything(&self) -> Vec<String> {
        let mut dump = Vec::new();
        for (table, columns) in [
            ("inbox_event", "event_id || status || reason || deliveries || received_at_us"),
            ("applied_event", "event_id || applied_at_us || run_id"),
            ("ledger_entry", "entry_id || effect_key || amount_minor || applied_at_us || reason"),
            ("object_state", "object_id || status || updated_at_us || changed_by"),
            ("outbox_message", "idempotency_key"),
            ("correction", "sequence || hash"),
            ("lease", "name || holder || expires_at_us"),
            ("planned_correction", "correction_id"),
            ("run", "run_id || outcome"),
        ] {
            let sql = format!("select {columns} from {table} order by 1");
            let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(self.store.pool()).await.unwrap();
            dump.extend(rows.iter().map(|row| format!("{table}: {}", row.get::<String, _>(0))));
        }
        dump
    }

    pub fn settings(&self) -> Settings {
        const TEXT: &str = "[[provider]]\nname = \"stripe\"\napi_key = { env = \"KEY\" }\n\
            [corrections]\nauto = [\"missed_event\"]\ncount_max = 100\nminor_max = { usd = 100000 }\n";
        let key = |_: &str| Some("rk_live_of_a_test".to_owned());
        let mut settings = recon::config::parse(TEXT, &self.dir.path().join("recon.toml"), &key).unwrap();
        settings.store_url = self.url.clone().into();
        settings.providers.clear();
        settings
    }

    pub fn foreign_settings(&self) -> Settings {
        let mut settings = self.settings();
        settings.local.side = Side::Database(Secret::new("postgres://books".into()));
        settings
    }
}

pub fn run(run_id: &str, started_at_us: i64) -> Run {
    Run {
        run_id: run_id.into(),
        started_at_us,
        finished_at_us: None,
        window: Window { from_us: 0, until_us: 900_000_000 },
        time_zone: "UTC".into(),
        basis: "created".into(),
        outcome: RunOutcome::Started,
        findings: 0,
        report_dir: String::new(),
        error: String::new(),
    }
}
