//! Applying 100,000 corrections on an SQLite file: batched, applied already, and one transaction per
//! correction beside it. Run with `cargo bench --bench applying`; `RECON_BENCH_POSTGRES=postgres://…` names an
//! empty database on which the door is measured, too.
//!
//! A plan's rows are read again, go through the door (event key and ledger entry) and into the history
//! of corrections; a missed event is also filed in the inbox, with a body of 1 KB. The store's settings are those of production (WAL, `synchronous = full`), on the temporary folder.

use anyhow::{Result, ensure};
use recon::apply::{Aliases, Effect, Request, apply_batch, apply_once};
use recon::commands::apply::{AskProvider, Fetched, RowOutcome, Tally, Work, carry_out};
use recon::correction::{Correction, PlanContext, plan};
use recon::findings::{Action, Finding, Kind, Severity};
use recon::gather::{ExpectedEffect, Standing};
use recon::record::{EffectKey, EffectKind, EventKey, Scope, Window};
use recon::store::runs::{self, Run, RunOutcome};
use recon::store::{Access, Store, plans, shown_url};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const CORRECTIONS: usize = 100_000;
/// One transaction each is slow; its rate does not need all of them.
const SINGLE: usize = 2_000;
const RUN_ID: &str = "bench";

fn main() -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(bench())
}

async fn bench() -> Result<()> {
    let dir = tempfile::tempdir()?;
    println!("applying {CORRECTIONS} corrections, SQLite, synchronous = full, {}", dir.path().display());

    for (kind, action, what) in [
        (Kind::MissingEffect, Action::ApplyEffect, "plan of missing effects"),
        (Kind::MissedEvent, Action::ReplayEvent, "plan of missed events"),
    ] {
        let store = new_store(&dir, &format!("{kind}.db")).await?;
        let rows = planned(&store, kind, action).await?;
        let (first, tally) = timed(&store, &rows).await?;
        ensure!(tally.count(RowOutcome::Applied) == u64::try_from(CORRECTIONS)?, "{tally:?}");
        print_rate(what, CORRECTIONS, first);
        let (again, tally) = timed(&store, &rows).await?;
        ensure!(tally.count(RowOutcome::AlreadyApplied) == u64::try_from(CORRECTIONS)?, "{tally:?}");
        print_rate("  … all applied already", CORRECTIONS, again);
        store.close().await;
    }

    let store = new_store(&dir, "door.db").await?;
    let requests: Vec<Request> = (0..CORRECTIONS).map(request).collect();
    print_rate("door, batched", CORRECTIONS, through_the_door(&store, &requests).await?);
    print_rate("door, all applied already", CORRECTIONS, through_the_door(&store, &requests).await?);
    store.close().await;

    let store = new_store(&dir, "single.db").await?;
    print_rate("door, one transaction each", SINGLE, one_by_one(&store, &requests[..SINGLE]).await?);
    if let Ok(url) = std::env::var("RECON_BENCH_POSTGRES") {
        on_postgres(&url, &requests).await?;
    }
    Ok(())
}

async fn on_postgres(url: &str, requests: &[Request]) -> Result<()> {
    let store = Store::open(url, Access::ReadWrite).await?;
    println!("on PostgreSQL, {}", shown_url(url));
    let (single, batched) = requests.split_at(SINGLE);
    print_rate("door, batched", batched.len(), through_the_door(&store, batched).await?);
    print_rate("door, all applied already", batched.len(), through_the_door(&store, batched).await?);
    print_rate("door, one transaction each", SINGLE, one_by_one(&store, single).await?);
    Ok(())
}

async fn one_by_one(store: &Store, requests: &[Request]) -> Result<Duration> {
    let started = Instant::now();
    for request in requests {
        let mut tx = store.begin_write().await?;
        apply_once(&mut tx, &request.events, &request.key, &request.effect).await?;
        tx.commit().await?;
    }
    Ok(started.elapsed())
}

fn print_rate(what: &str, count: usize, took: Duration) {
    let per_second = count as u128 * 1_000_000 / took.as_micros().max(1);
    println!("{what:<28} {count:>7} in {:>6} ms  {per_second:>8}/s", took.as_millis());
}

/// A provider that has everything as planned and takes no time to say so.
struct AsPlanned;

impl AskProvider for AsPlanned {
    async fn status(&self, _: &Scope, _: &str) -> Result<Option<Fetched>> {
        Ok(None)
    }

    async fn standings(&self, _: &Scope, expected: &[ExpectedEffect]) -> Result<Vec<Standing>> {
        Ok(vec![Standing::AsExpected; expected.len()])
    }
}

async fn timed(store: &Store, rows: &[Correction]) -> Result<(Duration, Tally)> {
    let work = Work {
        store,
        run_id: RUN_ID,
        run_started_us: 1,
        now_us: 2,
        inbox_is_ours: true,
        keeps_messages: false,
        lease: None,
    };
    let started = Instant::now();
    let tally = carry_out(work, rows, &AsPlanned).await?;
    Ok((started.elapsed(), tally))
}

async fn through_the_door(store: &Store, requests: &[Request]) -> Result<Duration> {
    let started = Instant::now();
    for batch in requests.chunks(10_000) {
        let mut tx = store.begin_write().await?;
        apply_batch(&mut tx, batch).await?;
        tx.commit().await?;
    }
    Ok(started.elapsed())
}

async fn new_store(dir: &tempfile::TempDir, name: &str) -> Result<Store> {
    Store::open(&format!("sqlite:{}", dir.path().join(name).display()), Access::ReadWrite).await
}

/// Ids as a provider gives them: long, without order.
fn id(prefix: &str, number: usize) -> String {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{prefix}_3O{mixed:020}{number:06}")
}

fn scope() -> Scope {
    Scope::new("stripe", "", "live")
}

fn request(number: usize) -> Request {
    let object_id = id("ch", number);
    Request {
        events: vec![EventKey { scope: scope(), event_id: id("evt", number) }],
        key: EffectKey::of(&scope(), EffectKind::Credit, &object_id),
        effect: Effect {
            kind: EffectKind::Credit,
            object_id,
            aliases: Aliases::default(),
            amount_minor: 500,
            currency: "usd".to_owned(),
            occurred_at_us: 1,
            applied_at_us: 2,
            corrects_entry_id: String::new(),
            run_id: RUN_ID.to_owned(),
            reason: "missed_event".to_owned(),
        },
    }
}

fn finding(number: usize) -> Finding {
    Finding {
        kind: Kind::MissedEvent,
        cause: String::new(),
        severity: Severity::Critical,
        scope: scope(),
        object_id: id("ch", number),
        root_id: id("pi", number),
        effect: Some(EffectKind::Credit),
        event_ids: vec![id("evt", number)],
        effect_ids: Vec::new(),
        currency: "usd".to_owned(),
        found_currency: String::new(),
        explains: Vec::new(),
        target_state: None,
        expected_minor: Some(500),
        found_minor: None,
        expected_state: None,
        found_state: None,
        occurred_at_us: 1,
        judged_at_us: 1,
        action: Action::ReplayEvent,
        note: String::new(),
    }
}

/// A finished run with its plan and the provider's events, of 1 KB each.
async fn planned(store: &Store, kind: Kind, action: Action) -> Result<Vec<Correction>> {
    let run = Run {
        run_id: RUN_ID.to_owned(),
        started_at_us: 1,
        finished_at_us: None,
        window: Window { from_us: 0, until_us: 1 },
        time_zone: "UTC".to_owned(),
        basis: "created".to_owned(),
        outcome: RunOutcome::Started,
        findings: 0,
        report_dir: String::new(),
        error: String::new(),
    };
    runs::start(store, &run).await?;
    let findings: Vec<Finding> =
        (0..CORRECTIONS).map(|number| Finding { kind, action, ..finding(number) }).collect();
    let (auto, amounts) = (BTreeSet::new(), BTreeMap::new());
    let rows = plan(&findings, PlanContext { run_id: RUN_ID, auto: &auto, entry_amounts: &amounts });
    let mut tx = store.begin_write().await?;
    plans::save_plan(&mut tx, RUN_ID, &rows).await?;
    let filler = "x".repeat(1_000);
    for number in 0..CORRECTIONS {
        let body = format!(r#"{{"type":"charge.succeeded","filler":"{filler}"}}"#).into_bytes();
        sqlx::query("insert into provider_record values ('stripe', '', 'live', 'events', $1, 1, 1, $2)")
            .bind(id("evt", number))
            .bind(body)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    Ok(rows)
}
