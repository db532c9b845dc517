//! The oracle over books that are not recon's own: the shop of the demonstration keeps what it received and booked in
//! tables of its own shape, on each of the databases that are read. Found must be planted, and nothing there may change.

use crate::books::{Books, Kind, on_each};
use crate::mariadb::Server;
use crate::postgres::{Cluster, Place};
use crate::stage::Stage;
use recon::commands::Outcome;
use recon::commands::apply::{ApplyArgs, apply_to};
use recon::config;
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use sqlx::Row;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

on_each!(found_is_planted_in_books_of_another_shape);

/// Seeds for each database; `RECON_SEEDS` asks for more.
const SEEDS: u64 = 3;

/// An instant of the shop: a number in SQLite, a date elsewhere.
pub fn instant(kind: Kind, us: i64) -> String {
    match kind {
        Kind::Sqlite => us.to_string(),
        Kind::Postgres => format!("timestamptz 'epoch' + {us} * interval '1 microsecond'"),
        Kind::MariaDb => format!("date_add('1970-01-01', interval {us} microsecond)"),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The shop's tables. MariaDB compares their ids as it does by default: neither case nor blanks at the end count.
fn tables(kind: Kind) -> String {
    let (id, at) =
        (kind.pick("text", "text", "varchar(190)"), kind.pick("integer", "timestamptz", "datetime(6)"));
    let bytes = kind.pick("blob", "bytea", "mediumblob");
    format!(
        "create table shop_event (acct {id}, live integer, id {id}, name {id}, raw {bytes}, sha {id}, got {at}, word {id});
         create table shop_booking (number {id}, acct {id}, live integer, ext {id}, what {id}, cents bigint, money char(3),
            booked {at}, event {id}, undoes {id});
         create table shop_payment (acct {id}, live integer, ext {id}, word {id}, refunded bigint, changed {at}, who {id});
         create index booking_at on shop_booking (booked);
         create index booking_ext on shop_booking (ext);
         create index event_id on shop_event (id);"
    )
}

/// What of the shop stands in a database of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    All,
    /// The books are recon's own ledger.
    InboxOnly,
}

/// Moves what the shop got and booked out of the store.
async fn move_out(stage: &Stage, kind: Kind, books: &Books, what: Moved) {
    let store = stage.store().await;
    let all = |sql: &'static str| sqlx::query(sql).fetch_all(store.pool());
    let live = |row: &sqlx::any::AnyRow| i32::from(row.get::<String, _>("mode") == "live");
    let text = |row: &sqlx::any::AnyRow, name: &str| {
        row.get::<Option<String>, _>(name).map_or("null".to_owned(), |text| quoted(&text))
    };
    let at = |row: &sqlx::any::AnyRow, name: &str| instant(kind, row.get::<i64, _>(name));
    let mut sql = tables(kind);
    let mut insert = |table: &str, rows: Vec<String>| {
        for chunk in rows.chunks(100) {
            writeln!(sql, "insert into {table} values {};", chunk.join(", ")).unwrap();
        }
    };
    let events = all("select * from inbox_event").await.unwrap();
    insert(
        "shop_event",
        events
            .iter()
            .map(|row| {
                let body: Vec<u8> = row.get("body");
                let hex: Vec<String> = body.iter().map(|byte| format!("{byte:02x}")).collect();
                let body = kind.bytes(&hex.concat());
                let (account, id, name) =
                    (text(row, "account"), text(row, "event_id"), text(row, "event_type"));
                let (sha, got, word) =
                    (text(row, "body_sha256"), at(row, "received_at_us"), text(row, "status"));
                format!("({account}, {}, {id}, {name}, {body}, {sha}, {got}, {word})", live(row))
            })
            .collect(),
    );
    let entries = all("select * from ledger_entry").await.unwrap();
    insert(
        "shop_booking",
        entries
            .iter()
            .map(|row| {
                let (number, account, ext) = (text(row, "entry_id"), text(row, "account"), text(row, "object_id"));
                let (what, money, booked) = (text(row, "kind"), text(row, "currency"), at(row, "applied_at_us"));
                let (event, undoes) = (text(row, "event_id"), text(row, "corrects_entry_id"));
                let cents: i64 = row.get("amount_minor");
                let live = live(row);
                format!("({number}, {account}, {live}, {ext}, {what}, {cents}, {money}, {booked}, {event}, {undoes})")
            })
            .collect(),
    );
    let states = all("select * from object_state").await.unwrap();
    insert(
        "shop_payment",
        states
            .iter()
            .map(|row| {
                let refunded = row.get::<Option<i64>, _>("refunded_minor");
                let refunded = refunded.map_or("null".to_owned(), |minor| minor.to_string());
                let (account, ext, word) =
                    (text(row, "account"), text(row, "object_id"), text(row, "status"));
                let (changed, who) = (at(row, "updated_at_us"), text(row, "changed_by"));
                format!("({account}, {}, {ext}, {word}, {refunded}, {changed}, {who})", live(row))
            })
            .collect(),
    );
    assert!(events.len() > 20 && entries.len() > 5 && states.len() > 5);
    books.run_sql(&sql).await;
    let tables: &[&str] = match what {
        Moved::All => &["inbox_event", "ledger_entry", "object_state"],
        Moved::InboxOnly => &["inbox_event"],
    };
    for table in tables {
        let sql = format!("delete from {table}");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(store.pool()).await.unwrap();
    }
    store.close().await;
}

/// The team's statements over these tables.
fn write_queries(kind: Kind, folder: &Path) {
    let us = |column: &str| match kind {
        Kind::Sqlite => column.to_owned(),
        Kind::Postgres => format!("cast(extract(epoch from {column}) * 1000000 as bigint)"),
        Kind::MariaDb => format!("cast(unix_timestamp({column}) * 1000000 as signed)"),
    };
    let within = |column: &str| {
        let bound = |name: &str| match kind {
            Kind::Sqlite => format!(":{name}"),
            Kind::Postgres => format!("timestamptz 'epoch' + :{name} * interval '1 microsecond'"),
            Kind::MariaDb => format!("from_unixtime(:{name} / 1000000)"),
        };
        format!("{column} >= {} and {column} < {}", bound("from_us"), bound("until_us"))
    };
    let scope = "'stripe' as provider, acct as account, case live when 1 then 'live' else 'test' end as mode";
    std::fs::create_dir_all(folder).unwrap();
    for (name, text) in [
        (
            "inbox.sql",
            format!(
                "select {scope}, id as event_id, name as event_type, {} as received_at_us, word as status,
                    sha as body_sha256 from shop_event where {}",
                us("got"),
                within("got")
            ),
        ),
        (
            "inbox_body.sql",
            "select raw as body, id as event_id from shop_event where acct = :account and id = :event_id".to_owned(),
        ),
        (
            "effects.sql",
            format!(
                "select number as effect_id, {scope}, ext as object_id, what as kind, cents as amount_minor,
                    money as currency, {} as applied_at_us, event as event_id, undoes as corrects_effect_id
                 from shop_booking where {}",
                us("booked"),
                within("booked")
            ),
        ),
        (
            "states.sql",
            format!(
                "select {scope}, ext as object_id, word as status, refunded as refunded_minor, {} as updated_at_us,
                    who as changed_by from shop_payment where {}",
                us("changed"),
                within("changed")
            ),
        ),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// A stage whose shop keeps its books itself.
pub async fn staged(
    kind: Kind,
    seed: u64,
    events: usize,
    faults: Faults,
    own: Option<Books>,
) -> (Stage, Books) {
    let mix = Mix::random(seed, u32::try_from(seed % 12).unwrap() + 1);
    staged_with(kind, (seed, events, &mix, faults), own, Moved::All).await
}

/// The same with faults of one's choice.
pub async fn staged_with(
    kind: Kind,
    (seed, events, mix, faults): (u64, usize, &Mix, Faults),
    own: Option<Books>,
    what: Moved,
) -> (Stage, Books) {
    let stage = Stage::on(recon::store::Database::Sqlite, seed, events, mix, faults).await;
    let books = own.unwrap_or_else(|| Books::new(kind, stage.folder.path()));
    move_out(&stage, kind, &books, what).await;
    write_queries(kind, &stage.folder.path().join("queries"));
    std::fs::write(stage.folder.path().join("books.url"), books.url()).unwrap();
    let local = if what == Moved::All { "url = { file = \"books.url\" }\n" } else { "" };
    let sides = format!("[inbox]\nurl = {{ file = \"books.url\" }}\n[local]\n{local}queries = \"queries\"\n");
    let text = std::fs::read_to_string(stage.config()).unwrap();
    std::fs::write(stage.config(), format!("{text}{sides}")).unwrap();
    (stage, books)
}

async fn found_is_planted_in_books_of_another_shape(kind: Kind) {
    let count = std::env::var("RECON_SEEDS").map_or(SEEDS, |text| text.parse().unwrap());
    for seed in 1..=count {
        let (stage, _books) = staged(kind, seed, 220, Faults::default(), None).await;
        let (outcome, dir) = stage.reconcile().await;
        let verdict = stage.verdict(&dir, false);
        assert!(
            verdict.is_exact(),
            "{kind:?}, seed {seed}: missed {:#?}, invented {:#?}",
            verdict.missed,
            verdict.invented
        );
        assert!(matches!(outcome, Outcome::Findings | Outcome::Clean), "{kind:?}, seed {seed}: {outcome:?}");
        // What stands in the team's own books is the team's to correct.
        let settings = config::load(Some(&stage.config())).unwrap();
        let args = ApplyArgs { plan: dir.join("plan.csv") };
        let refused = apply_to(&settings, &args, stage.world.now_us, &mut Vec::new()).await.unwrap();
        assert_eq!(refused, Outcome::Config, "{kind:?}, seed {seed}");
        // The same again says the same.
        let again = stage.reconcile().await;
        assert_eq!(again.0, outcome);
        assert!(stage.verdict(&again.1, false).is_exact(), "{kind:?}, seed {seed}, again");
    }
}

/// A database that ends whoever sits in a transaction and does nothing, and a provider that takes longer.
async fn waits_for_the_provider(kind: Kind, books: Books, limit: &str) {
    let faults = Faults { page_latency: Duration::from_millis(1_500), ..Faults::default() };
    let (stage, books) = staged(kind, 5, 120, faults, Some(books)).await;
    books.run_sql(limit).await;
    let (_, dir) = stage.reconcile().await;
    assert!(stage.verdict(&dir, false).is_exact(), "{kind:?}");
}

#[tokio::test]
async fn no_transaction_of_mariadb_is_open_while_the_provider_is_waited_for() {
    let books = Books::on(Server::own());
    waits_for_the_provider(Kind::MariaDb, books, "set global idle_transaction_timeout = 1").await;
}

#[tokio::test]
async fn no_transaction_of_postgres_is_open_while_the_provider_is_waited_for() {
    let books = Books::Cluster(Place::on(Cluster::shared()));
    let name = books.url().split(['/', '?']).nth(3).unwrap().to_owned();
    let limit = format!("alter database {name} set idle_in_transaction_session_timeout = '1s'");
    waits_for_the_provider(Kind::Postgres, books, &limit).await;
}
