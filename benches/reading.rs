//! Reading an SQLite file in bulk: the inbox and the books of another program, by the team's statements, as a run reads
//! them, beside the same rows through the driver that the store uses. `cargo bench --bench reading`; `-- 200000` takes
//! another number of rows than a million.
//!
//! What is counted is the rows that became facts: read, checked against the contract, and handed on.

use anyhow::{Context, Result, bail, ensure};
use futures_util::TryStreamExt;
use recon::config;
use recon::gather::{Dialect, Inbox, LocalBooks, Moment};
use recon::provider::stripe;
use recon::record::Window;
use recon::store::{Access, Store};
use std::path::Path;
use std::time::Instant;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => bench(1_000_000).await,
        [rows] => bench(rows.parse()?).await,
        _ => bail!("usage: reading [ROWS]"),
    }
}

const INBOX: &str =
    "select 'stripe' as provider, '' as account, 'live' as mode, event_id, event_type, received_at_us, status
from inbox where received_at_us >= :from_us and received_at_us < :until_us";
const BODY: &str = "select null as body where :provider || :account || :mode = :event_id";
const EFFECTS: &str = "select effect_id, 'stripe' as provider, '' as account, 'live' as mode, object_id, 'credit' as kind, amount_minor,
currency, applied_at_us, event_id, null as corrects_effect_id
from books where applied_at_us >= :from_us and applied_at_us < :until_us";
const STATES: &str = "select 'stripe' as provider, '' as account, 'live' as mode, object_id, 'paid' as status, null as refunded_minor,
applied_at_us as updated_at_us from books where applied_at_us >= :from_us and applied_at_us < :until_us";

async fn bench(rows: u64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("team.db");
    fill(&file, rows).await?;
    std::fs::create_dir_all(folder.path().join("queries/local"))?;
    let statements =
        [("inbox.sql", INBOX), ("inbox_body.sql", BODY), ("effects.sql", EFFECTS), ("states.sql", STATES)];
    for (name, sql) in statements {
        std::fs::write(folder.path().join("queries/local").join(name), sql)?;
    }
    std::fs::write(
        folder.path().join("recon.toml"),
        "[inbox]\nurl = \"sqlite:team.db\"\n[local]\nurl = \"sqlite:team.db\"\n[[provider]]\nname = \"stripe\"\n\
         kind = \"stripe\"\nbase_url = \"http://127.0.0.1:9\"\napi_key = { file = \"key\" }\nmode = \"live\"\n",
    )?;
    std::fs::write(folder.path().join("key"), "rk_live_bench")?;
    std::env::set_current_dir(folder.path())?;
    let settings = config::load(Some(&folder.path().join("recon.toml")))?;
    let store = Store::open(&settings.store_url, Access::ReadWrite).await?;
    let always = Window { from_us: 0, until_us: i64::MAX };
    let books = LocalBooks::open(&settings, &store, Dialect::stripe(stripe::exponent), always);
    let books = books.await?.context("no books")?;
    let inbox = Inbox::open(&settings).await?.context("no inbox")?;
    for _ in 0..2 {
        let mut moment = Moment::begin(Some(&books), Some(&inbox)).await?;
        let started = Instant::now();
        told("inbox, as facts", moment.events(always, &mut |_| Ok(())).await?, started, rows)?;
        let started = Instant::now();
        told("books, as facts", moment.effects(always, &mut |_| Ok(())).await?, started, rows)?;
        let started = Instant::now();
        told("statuses, as facts", moment.states(always, &mut |_| Ok(())).await?, started, rows)?;
        moment.end().await?;
        let pool = sqlx::SqlitePool::connect("sqlite:team.db").await?;
        let started = Instant::now();
        let found =
            sqlx::query(sqlx::AssertSqlSafe(INBOX.replace(":from_us", "0").replace(":until_us", "9e18")));
        let mut count = 0;
        let mut stream = found.persistent(false).fetch(&pool);
        while stream.try_next().await?.is_some() {
            count += 1;
        }
        told("inbox, through the store's driver, rows only", count, started, rows)?;
    }
    Ok(())
}

fn told(what: &str, count: u64, started: Instant, expected: u64) -> Result<()> {
    ensure!(count == expected, "{what}: {count} rows of {expected}");
    let took = started.elapsed();
    let rate = u128::from(count) * 1_000_000 / took.as_micros().max(1);
    println!("{what:<46} {count} rows in {:>5} ms, {rate:>9} rows/s", took.as_millis());
    Ok(())
}

async fn fill(file: &Path, rows: u64) -> Result<()> {
    let url = format!("sqlite:{}?mode=rwc", file.display());
    let pool = sqlx::SqlitePool::connect(&url).await?;
    let numbers = format!(
        "with recursive numbers(n) as (select 0 union all select n + 1 from numbers where n < {})",
        rows - 1
    );
    let at = "1750000000000000 + n * 1000000";
    for statement in [
        "create table inbox (event_id text primary key, event_type text, received_at_us integer, status text)".to_owned(),
        "create table books (effect_id text primary key, object_id text, amount_minor integer, currency text, applied_at_us integer, \
         event_id text)".to_owned(),
        format!("{numbers} insert into inbox select printf('evt_3P%016x%06d', n * 7919, n), 'charge.succeeded', {at}, 'applied' from numbers"),
        format!("{numbers} insert into books select printf('%d', n), printf('ch_3P%016x%06d', n * 7919, n), 500, 'usd', {at}, \
                 printf('evt_3P%016x%06d', n * 7919, n) from numbers"),
    ] {
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&pool).await?;
    }
    pool.close().await;
    Ok(())
}
