//! A night over a million events that were paged already: PostgreSQL holds what the provider said, the inbox and the
//! books, on the same machine. `RECON_BENCH_POSTGRES=postgres://… cargo bench --bench nightly`; the database must be
//! empty, and is full afterwards. `-- 100000` takes another number of events.
//!
//! Half a million payments of two events each (1.5 KB), with a thousand planted faults: a credit booked twice, never or
//! with another amount. The run is a process of its own (`recon --offline`), so that its memory is its own; it must find
//! exactly what is planted. The first run also learns which id belongs to which payment, as it does with what every
//! night brings; the second has nothing to learn.

use anyhow::{Context, Result, bail, ensure};
use recon::cli::{RunRequest, WindowSpec};
use recon::provider::Cancel;
use recon::store::{Access, Store};
use recon::{commands, config};
use sqlx::{AssertSqlSafe, Row};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Every so manieth payment carries a fault, one of three kinds in turn.
const FAULT_EVERY: u64 = 500;
const DAY: &str = "2026-05-01";

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["run", folder] => run(Path::new(folder)).await,
        [] => bench(1_000_000).await,
        [events] => bench(events.parse()?).await,
        _ => bail!("usage: nightly [EVENTS]"),
    }
}

async fn bench(events: u64) -> Result<()> {
    let url = std::env::var("RECON_BENCH_POSTGRES").context("RECON_BENCH_POSTGRES names no database")?;
    let store = Store::open(&url, Access::ReadWrite).await?;
    let payments = events / 2;
    fill(&store, payments).await?;
    let folder = tempfile::tempdir()?;
    std::fs::write(
        folder.path().join("recon.toml"),
        format!(
            "[store]\nurl = \"{url}\"\n[[provider]]\nname = \"stripe\"\nkind = \"stripe\"\n\
             base_url = \"http://127.0.0.1:9\"\napi_key = {{ env = \"KEY\" }}\nmode = \"live\"\n"
        ),
    )?;
    for run in ["first run", "second run"] {
        night(folder.path(), run, events, payments)?;
    }
    for (what, sql) in [
        ("provider records", "select created_us, body from provider_record where stream <> 'x'"),
        (
            "inbox",
            "select provider, account, mode, event_id, event_type, received_at_us, status from inbox_event",
        ),
        (
            "books",
            "select entry_id, provider, account, mode, object_id, kind, amount_minor, currency from ledger_entry",
        ),
    ] {
        bare(&store, what, sql).await?;
    }
    store.close().await;
    Ok(())
}

/// The rows of one side alone, as fast as the driver gives them.
async fn bare(store: &Store, what: &str, sql: &'static str) -> Result<()> {
    use futures_util::TryStreamExt;
    let started = Instant::now();
    let mut rows = sqlx::query(sql).fetch(store.pool());
    let mut count = 0_u128;
    while rows.try_next().await?.is_some() {
        count += 1;
    }
    let rate = count * 1_000 / started.elapsed().as_millis().max(1);
    println!("{what}: {count} rows, {rate} rows/s as the driver gives them");
    Ok(())
}

/// A run in a process of its own.
fn night(folder: &Path, what: &str, events: u64, payments: u64) -> Result<()> {
    let started = Instant::now();
    let output =
        Command::new(std::env::current_exe()?).arg("run").arg(folder).env("KEY", "rk_live_bench").output()?;
    let took = started.elapsed();
    let said = String::from_utf8(output.stdout)?;
    let trouble = String::from_utf8(output.stderr)?;
    let (outcome, cost) = said.trim_end().rsplit_once('\n').context("the run said nothing")?;
    let outcome = outcome.lines().last().unwrap_or_default();
    println!(
        "{what}: {:.1} s for {events} events and {payments} payments; {cost}; {outcome}",
        took.as_secs_f32()
    );
    let expected = format!("findings={}", payments / FAULT_EVERY);
    ensure!(outcome.split(' ').any(|word| word == expected), "{expected} was planted: {outcome}\n{trouble}");
    Ok(())
}

async fn run(folder: &Path) -> Result<()> {
    let settings = config::load(Some(&folder.join("recon.toml")))?;
    let request = RunRequest {
        window: WindowSpec { since: Some(DAY.to_owned()), until: Some(DAY.to_owned()), month: None },
        providers: vec!["stripe".to_owned()],
        apply: false,
        offline: true,
        no_grace: false,
        json: false,
        now_us: 1_778_000_000_000_000,
        cancel: Cancel::never(),
    };
    std::env::set_current_dir(folder)?;
    commands::run::reconcile(&settings, &request, &mut std::io::stdout()).await?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let memory = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit_once(')').context("no name")?.1.split_whitespace().collect();
    println!("at most {}, user {} and system {} ticks", memory.trim(), fields[11], fields[12]);
    Ok(())
}

/// Rows of the day, by set statements: the provider's records and slices, the inbox, the books.
async fn fill(store: &Store, payments: u64) -> Result<()> {
    let started = Instant::now();
    let numbers = format!("generate_series(0, {}) n", payments - 1);
    let id = |prefix: &str| format!("'{prefix}_3P' || md5(n::text)");
    let (charge, intent) = (id("ch"), id("pi"));
    // Seconds of the day, in the order of the number.
    let at_s = format!("(1777593600 + n::bigint * 86000 / {payments})");
    let filler = "x".repeat(900);
    let object = format!(
        "'{{\"id\":\"' || {charge} || '\",\"object\":\"charge\",\"created\":' || {at_s} || ',\"livemode\":true,\
         \"amount\":500,\"amount_captured\":500,\"amount_refunded\":0,\"captured\":true,\"refunded\":false,\
         \"currency\":\"usd\",\"status\":\"succeeded\",\"payment_intent\":\"' || {intent} || '\",\"invoice\":null,\
         \"metadata\":{{}},\"balance_transaction\":null,\"description\":\"{filler}\"}}'"
    );
    let intent_object = format!(
        "'{{\"id\":\"' || {intent} || '\",\"object\":\"payment_intent\",\"created\":' || {at_s} || ',\"livemode\":true,\
         \"amount\":500,\"amount_received\":500,\"currency\":\"usd\",\"status\":\"succeeded\",\"latest_charge\":\"' || \
         {charge} || '\",\"invoice\":null,\"metadata\":{{}},\"description\":\"{filler}\"}}'"
    );
    let event = |prefix: &str, kind: &str, object: &str| {
        format!(
            "'{{\"id\":\"' || {} || '\",\"object\":\"event\",\"type\":\"{kind}\",\"created\":' || {at_s} || ',\
             \"livemode\":true,\"pending_webhooks\":0,\"data\":{{\"object\":' || {object} || '}}}}'",
            id(prefix)
        )
    };
    let mut statements = Vec::new();
    let mut record = |stream: &str, id: &str, body: &str| {
        statements.push(format!(
            "insert into provider_record select 'stripe', '', 'live', '{stream}', {id}, {at_s} * 1000000::bigint, \
             1777800000000000, convert_to({body}, 'UTF8') from {numbers}"
        ));
    };
    record("charges", &charge, &object);
    record("events", &id("evt_1"), &event("evt_1", "charge.succeeded", &object));
    record("events", &id("evt_2"), &event("evt_2", "payment_intent.succeeded", &intent_object));
    for (prefix, kind) in [("evt_1", "charge.succeeded"), ("evt_2", "payment_intent.succeeded")] {
        statements.push(format!(
            "insert into inbox_event (provider, account, mode, event_id, event_type, body, body_sha256, received_at_us, \
             last_delivery_at_us, status, completed_at_us) select 'stripe', '', 'live', {}, '{kind}', '{{}}', md5(n::text), \
             {at_s} * 1000000::bigint + 1500000, {at_s} * 1000000::bigint + 1500000, 'applied', \
             {at_s} * 1000000::bigint + 1700000 from {numbers}",
            id(prefix)
        ));
    }
    let entry = |prefix: &str, amount: &str, which: &str| {
        format!(
            "insert into ledger_entry (entry_id, provider, account, mode, effect_key, object_id, kind, amount_minor, currency, \
             occurred_at_us, applied_at_us, event_id) select '{prefix}' || {charge}, 'stripe', '', 'live', \
             '{prefix}credit:' || {charge}, {charge}, 'credit', {amount}, 'usd', {at_s} * 1000000::bigint, \
             {at_s} * 1000000::bigint + 1700000, {} from {numbers} where {which}",
            id("evt_1")
        )
    };
    let fault = |kind: u64| format!("n % {FAULT_EVERY} = 7 and n / {FAULT_EVERY} % 3 = {kind}");
    statements.push(entry(
        "",
        &format!("case when {} then 600 else 500 end", fault(2)),
        &format!("not ({})", fault(1)),
    ));
    statements.push(entry("again:", "500", &fault(0)));
    statements.push(format!(
        "insert into object_state select 'stripe', '', 'live', {intent}, 'paid', 0, {at_s} * 1000000::bigint, \
         {at_s} * 1000000::bigint + 1700000, 'worker' from {numbers}"
    ));
    for stream in recon::provider::stripe::STREAMS {
        statements.push(format!(
            "insert into slice select 'stripe', '', 'live', '{}', 1777500000000000, 1777790000000000, 'closed', 1, 1, '', \
             1777800000000000, 'bench'",
            stream.name
        ));
    }
    statements.push("analyze".to_owned());
    for statement in statements {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(store.pool()).await?;
    }
    let row = sqlx::query("select pg_database_size(current_database()) / 1000000 as size")
        .fetch_one(store.pool())
        .await?;
    println!("filled {} MB in {:.0} s", row.try_get::<i64, _>("size")?, started.elapsed().as_secs_f32());
    Ok(())
}
