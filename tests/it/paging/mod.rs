//! From the provider's HTTP API to rows in the store, with the proof of what was read.

#![expect(clippy::unwrap_used, reason = "what a test prepares fails by panicking")]

mod client;
mod field_cases;
mod property;
mod rereading;
mod server;
mod sharing;

use recon::config::{Accounts, LimitSettings, ProviderSettings, Secret};
use recon::provider::{Backoff, Cancel, Client, Lookup, Paged, Progress, RunContext, Stream, Timing, page};
use recon::record::{CoverageStatus, SECOND_US, Scope, Window};
use recon::store::{Access, Store};
use server::{Row, Server, body_of};
use sqlx::Row as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

const THINGS: Stream = Stream {
    name: "things",
    path: "/v1/things",
    query: &[("expand[]", "data.balance_transaction")],
    memory: None,
    by_id_path: "/v1/things",
};

/// 2026-01-01T00:00:00.200Z.
const NOW_US: i64 = 1_767_225_600_200_000;

/// A clock that moves only by being waited on, and what it was asked to wait.
#[derive(Clone, Default)]
struct Waits(Arc<Mutex<Vec<Duration>>>);

impl Waits {
    /// Waits of at least `shortest`: those for a turn at the limiter are far shorter.
    fn at_least(&self, shortest: Duration) -> Vec<Duration> {
        self.0.lock().unwrap().iter().copied().filter(|wait| *wait >= shortest).collect()
    }

    fn timing(&self) -> Timing {
        let nanos = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&nanos);
        let waits = Arc::clone(&self.0);
        Timing::new(
            NOW_US,
            move || Duration::from_nanos(read.load(Ordering::SeqCst)),
            move |wait| {
                waits.lock().unwrap().push(wait);
                let target = Duration::from_nanos(nanos.load(Ordering::SeqCst)).saturating_add(wait);
                nanos.fetch_max(u64::try_from(target.as_nanos()).unwrap_or(u64::MAX), Ordering::SeqCst);
                Box::pin(tokio::task::yield_now())
            },
        )
    }
}

fn settings(base_url: &str) -> ProviderSettings {
    ProviderSettings {
        name: "stripe".to_owned(),
        base_url: base_url.to_owned(),
        api_key: Secret::new("sk_test_never_shown".to_owned()),
        accounts: Accounts::Named(vec![String::new()]),
        mode: "test".to_owned(),
        requests_per_second: 10_000,
        account_requests_per_second: 40_000,
        settle_delay: Duration::from_mins(5),
        effects: BTreeSet::new(),
        event_types: None,
        intent: None,
    }
}

fn limits() -> LimitSettings {
    LimitSettings {
        run_budget: Duration::from_hours(2),
        ask_count_max: 1000,
        attempts_max: 4,
        statement_timeout: Duration::from_mins(10),
    }
}

/// A store, a client and a run against one server.
struct Bench {
    store: Store,
    folder: TempDir,
    settings: ProviderSettings,
    client: Client,
    waits: Waits,
}

impl Bench {
    async fn new(url: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("recon.db");
        let store = Store::open(&format!("sqlite:{}", path.display()), Access::ReadWrite).await.unwrap();
        let (settings, waits) = (settings(url), Waits::default());
        let client = Client::with_timing(&settings, &limits(), waits.timing(), Backoff::DEFAULT).unwrap();
        Self { store, folder, settings, client, waits }
    }

    fn lookup<'a>(&'a self, scope: &'a Scope, cancel: &'a Cancel) -> Lookup<'a> {
        Lookup { store: &self.store, client: &self.client, scope, stream: &THINGS, cancel }
    }

    async fn page(&self, run: &RunContext, from: i64, until: i64) -> anyhow::Result<Paged> {
        page(&self.store, &self.client, &self.settings, &[THINGS], window(from, until), run).await
    }

    /// Id → (created second, body).
    async fn stored(&self) -> BTreeMap<String, (i64, String)> {
        sqlx::query("select record_id, created_us, body from provider_record where stream = 'things'")
            .fetch_all(self.store.pool())
            .await
            .unwrap()
            .into_iter()
            .map(|row| {
                let body = String::from_utf8(row.get::<Vec<u8>, _>("body")).unwrap();
                (row.get("record_id"), (row.get::<i64, _>("created_us") / SECOND_US, body))
            })
            .collect()
    }
}

fn run(run_id: &str) -> RunContext {
    RunContext {
        run_id: run_id.to_owned(),
        resume_of: None,
        accounts: vec![String::new()],
        now_us: NOW_US,
        cancel: Cancel::never(),
        progress: Arc::new(Progress::lines()),
    }
}

fn window(from: i64, until: i64) -> Window {
    Window { from_us: from * SECOND_US, until_us: until * SECOND_US }
}

fn is_covered(paged: &Paged) -> bool {
    paged.coverage.iter().all(|row| row.status == CoverageStatus::Covered)
}

/// Every row created in the window is stored byte for byte, nothing else is, or a gap says so.
async fn check(bench: &Bench, rows: &[Row], paged: &Paged, window: Window) {
    let stored = bench.stored().await;
    let mut reached = window.from_us;
    for range in &paged.coverage {
        assert_eq!(range.from_us, reached, "{:?}", paged.coverage);
        reached = range.until_us;
        assert!((range.status == CoverageStatus::Covered) == range.cause.is_empty(), "{range:?}");
    }
    assert_eq!(reached, window.until_us, "{:?}", paged.coverage);
    let mut expected = 0;
    for row in rows.iter().filter(|row| window.contains(row.created * SECOND_US)) {
        let at_us = row.created * SECOND_US;
        let range = paged.coverage.iter().find(|range| range.from_us <= at_us && at_us < range.until_us);
        let is_covered = range.is_some_and(|range| range.status == CoverageStatus::Covered);
        match stored.get(&row.id) {
            Some((created, body)) => {
                assert_eq!((*created, body.as_str()), (row.created, body_of(row).as_str()));
                expected += 1;
            }
            None => assert!(!is_covered, "{row:?} is lost: {:?}", paged.coverage),
        }
    }
    assert_eq!(stored.len(), expected, "rows from outside of the window");
    let held: u64 = paged.coverage.iter().map(|range| range.records).sum();
    assert_eq!(held, stored.len() as u64);
}
