//! The worker on received events whose own objects prove their effects: batched, and one transaction for each event
//! beside it, in one run. `cargo bench --bench working`; `RECON_BENCH_POSTGRES=postgres://…` names an empty database,
//! else the store is an SQLite file with production settings (WAL, `synchronous = full`) on the temporary folder.
//!
//! An event is claimed, read, resolved, booked (event key, ledger entry), its payment's status set, and ended: all
//! that `recon work` does but asking the provider.

use anyhow::{Result, ensure};
use recon::config::{self, Settings};
use recon::provider::{Cancel, Timing};
use recon::record::{EventKey, Scope, sha256_hex};
use recon::store::arrivals::{Arrival, file_arrivals};
use recon::store::{Access, Store, shown_url};
use recon::work::{End, Worker};
use sqlx::Row;
use std::path::Path;
use std::time::{Duration, Instant};

const EVENTS: usize = 60_000;
const BATCH: usize = 5_000;
/// One transaction each is slow; its rate does not need all of them.
const SINGLE: usize = 2_000;

fn main() -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(bench())
}

async fn bench() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let file = format!("sqlite:{}", dir.path().join("recon.db").display());
    let url = std::env::var("RECON_BENCH_POSTGRES").unwrap_or(file);
    let store = Store::open(&url, Access::ReadWrite).await?;
    println!("working through {EVENTS} received events of 1.5 KB on {}", shown_url(&url));
    receive(&store, 0, EVENTS).await?;
    let batched = work(&store, &settings(dir.path(), &url, BATCH)?, EVENTS).await?;
    receive(&store, EVENTS, SINGLE).await?;
    let single = work(&store, &settings(dir.path(), &url, 1)?, EVENTS + SINGLE).await?;
    let fast = rate(&format!("batches of {BATCH}"), EVENTS, batched);
    let slow = rate("one transaction each", SINGLE, single);
    println!("{} times", fast / slow.max(1));
    store.close().await;
    Ok(())
}

fn settings(folder: &Path, url: &str, batch: usize) -> Result<Settings> {
    let text = format!(
        "[store]\nurl = \"{url}\"\n[[provider]]\nname = \"stripe\"\nkind = \"stripe\"\nbase_url = \"http://127.0.0.1:9\"\n\
         api_key = {{ file = \"stripe.key\" }}\nmode = \"live\"\n[work]\nfetch = []\nbatch = {batch}\n"
    );
    std::fs::write(folder.join("stripe.key"), "rk_live_bench")?;
    std::fs::write(folder.join("recon.toml"), text)?;
    Ok(config::load(Some(&folder.join("recon.toml")))?)
}

async fn work(store: &Store, settings: &Settings, ledger_entries: usize) -> Result<Duration> {
    let worker = Worker::new(settings, store.clone(), Timing::real(), Cancel::never())?;
    let started = Instant::now();
    worker.run(true, async |_: &[End]| {}).await?;
    let took = started.elapsed();
    let row = sqlx::query("select count(*) as entries from ledger_entry").fetch_one(store.pool()).await?;
    ensure!(
        row.try_get::<i64, _>("entries")? == i64::try_from(ledger_entries)?,
        "not every effect was booked"
    );
    Ok(took)
}

fn rate(what: &str, count: usize, took: Duration) -> u128 {
    let per_second = count as u128 * 1_000_000 / took.as_micros().max(1);
    println!("{what:<24} {count:>7} in {:>6} ms  {per_second:>8} effects/s", took.as_millis());
    per_second
}

async fn receive(store: &Store, first: usize, count: usize) -> Result<()> {
    let scope = Scope::new("stripe", "", "live");
    let numbers: Vec<usize> = (first..first + count).collect();
    for chunk in numbers.chunks(1_000) {
        let arrivals: Vec<Arrival> = chunk.iter().map(|number| arrival(&scope, *number)).collect();
        let mut tx = store.begin().await?;
        file_arrivals(&mut tx, &arrivals).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Ids as a provider gives them: long, without order.
fn id(prefix: &str, number: usize) -> String {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{prefix}_3O{mixed:020}{number:06}")
}

fn arrival(scope: &Scope, number: usize) -> Arrival {
    let (event, charge, intent) = (id("evt", number), id("ch", number), id("pi", number));
    let filler = "x".repeat(1_000);
    let body = format!(
        r#"{{"id":"{event}","object":"event","type":"charge.succeeded","created":1750000000,"livemode":true,"pending_webhooks":1,"data":{{"object":{{"id":"{charge}","object":"charge","created":1750000000,"livemode":true,"amount":500,"amount_captured":500,"amount_refunded":0,"captured":true,"refunded":false,"currency":"usd","status":"succeeded","payment_intent":"{intent}","invoice":null,"metadata":{{}},"description":"{filler}"}}}}}}"#
    )
    .into_bytes();
    Arrival {
        key: EventKey { scope: scope.clone(), event_id: event },
        event_type: "charge.succeeded".to_owned(),
        body_sha256: sha256_hex(&body),
        body,
        headers: String::new(),
        url: String::new(),
        secret_slot: 1,
        received_at_us: 1_750_000_000_000_000 + i64::try_from(number).unwrap_or(0),
    }
}
