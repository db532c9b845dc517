//! The shapes in which teams keep the same thing: each schema's proposed statements are run by the real reading of a side,
//! and must give these very rows.

use crate::books::{Books, Kind};
use recon::config::{Settings, parse};
use recon::gather::{Dialect, Inbox, LocalBooks, Moment};
use recon::record::{Fact, Window, iso_exponent};
use recon::store::{Access, Store};
use std::path::Path;
use std::process::Command;

/// 2026-02-01T02:30:00Z.
const AT_US: i64 = 1_769_913_000_000_000;

/// Tables and rows, and what must be read of them, sorted.
struct Shape {
    kind: Kind,
    sql: &'static str,
    expected: &'static [&'static str],
}

const SHAPES: [Shape; 8] = [
    // Prisma: names in camel case, enums, texts as ids.
    Shape {
        kind: Kind::Postgres,
        sql: r#"create type "PaymentStatus" as enum ('PENDING', 'PAID', 'REFUNDED');
            create table "WebhookEvent" (id text primary key, type text not null, payload jsonb, "processedAt" timestamp(3), "createdAt" timestamp(3) not null);
            create table "Payment" (id text primary key, "stripePaymentIntentId" text, amount integer not null, currency text not null,
                status "PaymentStatus" not null, "createdAt" timestamp(3) not null, "updatedAt" timestamp(3) not null);
            insert into "WebhookEvent" values ('evt_1', 'charge.succeeded', '{"id": "evt_1"}', null, '2026-02-01 02:30:00'),
                ('evt_2', 'charge.succeeded', null, '2026-02-01 02:30:01', '2026-02-01 02:30:00.250');
            insert into "Payment" values ('a', 'pi_1', 1999, 'usd', 'PAID', '2026-02-01 02:30:00', '2026-02-01 02:30:00'),
                ('b', 'pi_2', 500, 'usd', 'PENDING', '2026-02-01 02:30:00', '2026-02-01 02:30:00');"#,
        expected: &[
            "body {\"id\": \"evt_1\"}",
            "credit payment:a pi_1 1999 usd +0",
            "event evt_1 charge.succeeded received +0",
            "event evt_2 charge.succeeded applied +250000",
            "state pi_1 paid +0",
            "state pi_2 pending +0",
        ],
    },
    // Zoned instants, decimal amounts, a schema of its own, a column that says whose a row is.
    Shape {
        kind: Kind::Postgres,
        sql: "create schema billing;
            create table billing.payments (id bigint, provider text, charge_id text, amount numeric(12, 2), currency text,
                refunded_amount numeric(12, 2), created_at timestamptz, updated_at timestamptz);
            insert into billing.payments values (1, 'stripe', 'ch_1', 19.99, 'USD', 5.00, '2026-01-31 23:30:00-03', '2026-02-01 02:30:02Z'),
                (2, 'paypal', 'PAY-1', 1.00, 'USD', 0, '2026-02-01 02:30:00Z', '2026-02-01 02:30:00Z'),
                (3, 'stripe', null, 2.00, 'USD', 0, '2026-02-01 02:30:00Z', '2026-02-01 02:30:00Z');",
        expected: &["credit payment:1 ch_1 1999 usd +0", "refund refund:1 ch_1 500 usd +2000000"],
    },
    // A ledger with signed lines.
    Shape {
        kind: Kind::Postgres,
        sql: "create table ledger_entries (id bigint, charge_id text, kind text, amount_minor bigint, currency text, stripe_event_id text,
                reverses_id bigint, booked_at timestamptz);
            insert into ledger_entries values (1, 'ch_1', 'payment', 100, 'usd', 'evt_1', null, '2026-02-01 02:30:00Z'),
                (2, 'ch_1', 'payment', -100, 'usd', null, 1, '2026-02-01 02:30:01Z'), (3, 'ch_1', 'refund', 30, 'usd', null, null, '2026-02-01 02:30:02Z'),
                (4, 'ch_1', 'coupon', 30, 'usd', null, null, '2026-02-01 02:30:02Z');",
        expected: &["credit 1 ch_1 100 usd +0 evt_1", "credit 2 ch_1 -100 usd +1000000 undoes 1", "refund 3 ch_1 30 usd +2000000"],
    },
    // Milliseconds in SQLite, as JavaScript writes them.
    Shape {
        kind: Kind::Sqlite,
        sql: "create table webhooks (id integer primary key, stripe_event_id text, type text, processed boolean, error text, created_at datetime);
            create table orders (id integer primary key, checkout_session_id text, total integer, currency text, status text, created_at datetime);
            insert into webhooks values (1, 'evt_1', 'a', true, null, 1769913000123), (2, 'evt_2', 'b', false, 'no', 1769913000000),
                (3, 'evt_3', 'c', false, null, 1769912999999);
            insert into orders values (1, 'cs_1', 700, 'eur', 'shipped', 1769913000001), (2, 'cs_2', 700, 'eur', 'draft', 1769913000001);",
        expected: &[
            "credit payment:1 cs_1 700 eur +1000",
            "event evt_1 a applied +123000",
            "event evt_2 b dead +0",
            "state cs_1 paid +1000",
            "state cs_2 pending +1000",
        ],
    },
    // Texts of more than one form, with a zone and without.
    Shape {
        kind: Kind::Sqlite,
        sql: "create table payments (id integer primary key, charge_id text, amount text, currency text, created_at timestamp);
            insert into payments values (1, 'ch_1', '1.50', 'usd', '2026-02-01T02:30:00Z'), (2, 'ch_2', '2', 'usd', '2026-02-01 02:30:00.5'),
                (3, 'ch_3', '3', 'usd', '2026-01-31 23:30:00-03:00'), (4, 'ch_4', '4', 'usd', '2026-02-01 02:29:59');",
        expected: &["credit payment:1 ch_1 150 usd +0", "credit payment:2 ch_2 200 usd +500000", "credit payment:3 ch_3 300 usd +0"],
    },
    // Seconds, and an edge: what lies at the end is of the next window.
    Shape {
        kind: Kind::Postgres,
        sql: "create table payments (id int, payment_intent text, amount_cents int, currency text, status text, created int);
            insert into payments values (1, 'pi_1', 100, 'usd', 'succeeded', 1769913000), (2, 'pi_2', 100, 'usd', 'succeeded', 1769912999),
                (3, 'pi_3', 100, 'usd', 'succeeded', 1769913060);",
        expected: &["credit payment:1 pi_1 100 usd +0", "state pi_1 paid +0"],
    },
    // MariaDB: an enum, flags, a name that is a keyword.
    Shape {
        kind: Kind::MariaDb,
        sql: "create table stripe_events (id varchar(255) primary key, type varchar(255), livemode tinyint(1), payload longtext, received_at datetime(6));
            create table payments (id int primary key, stripe_charge_id varchar(255), `amount` decimal(10, 2), currency char(3),
                status enum('paid', 'open'), created_at datetime(6), updated_at datetime(6));
            create table `refunds` (`key` int primary key, payment_id int, stripe_refund_id varchar(255), amount decimal(10, 2), created_at datetime(6));
            insert into stripe_events values ('evt_1', 'a', 1, '{}', '2026-02-01 02:30:00.000007'), ('evt_2', 'b', 0, '{}', '2026-02-01 02:30:00');
            insert into payments values (1, 'ch_1', 19.99, 'brl', 'paid', '2026-02-01 02:30:00', '2026-02-01 02:30:00'),
                (2, 'ch_2', 1.00, 'brl', 'open', '2026-02-01 02:30:00', '2026-02-01 02:30:00');
            insert into refunds values (9, 1, 're_1', 4.50, '2026-02-01 02:30:00.5');",
        expected: &[
            "body {}",
            "credit payment:1 ch_1 1999 brl +0",
            "event evt_1 a received +7",
            "event evt_2 b received +0 test",
            "refund refund:9 re_1 450 brl +500000",
            "state ch_1 paid +0",
            "state ch_2 pending +0",
        ],
    },
    // Seconds in MariaDB.
    Shape {
        kind: Kind::MariaDb,
        sql: "create table charges (id int primary key, stripe_id varchar(255), amount bigint, currency char(3), created bigint unsigned);
            insert into charges values (1, 'ch_1', 100, 'usd', 1769913000), (2, 'ch_2', 100, 'usd', 1769912999);",
        expected: &["credit payment:1 ch_1 100 usd +0"],
    },
];

/// Everything that is read of a window.
async fn read(settings: &Settings, window: Window) -> Vec<String> {
    let store = Store::open(&settings.store_url, Access::ReadWrite).await.unwrap();
    let mut rows = Vec::new();
    let mut keep = |fact: Fact| {
        let at_us = match &fact {
            Fact::LocalEffect(row) => row.applied_at_us,
            Fact::LocalState(row) => row.updated_at_us,
            Fact::InboxEvent(row) => row.received_at_us,
            other => panic!("{other:?}"),
        };
        assert!(window.contains(at_us), "{fact:?} is not of {window:?}");
        rows.push(match fact {
            Fact::LocalEffect(row) => {
                let at = row.applied_at_us - AT_US;
                let undoes = if row.corrects_effect_id.is_empty() {
                    String::new()
                } else {
                    format!("undoes {}", row.corrects_effect_id)
                };
                let (id, object, minor) = (&row.effect_id, &row.object_id, row.amount_minor);
                format!(
                    "{} {id} {object} {minor} {} +{at} {}{undoes}",
                    row.kind.as_str(),
                    row.currency,
                    row.event_id
                )
            }
            Fact::LocalState(row) => {
                format!("state {} {} +{}", row.object_id, row.status.as_str(), row.updated_at_us - AT_US)
            }
            Fact::InboxEvent(row) => {
                let mode = if &*row.scope.mode == "live" { "" } else { "test" };
                let (kind, at) = (&row.event_type, row.received_at_us - AT_US);
                format!("event {} {kind} {} +{at} {mode}", row.event_id, row.status.as_str())
            }
            other => panic!("{other:?}"),
        });
        Ok(())
    };
    let books = LocalBooks::open(settings, &store, Dialect::stripe(iso_exponent), window).await.unwrap();
    let inbox = Inbox::open(settings).await.unwrap();
    let mut moment = Moment::begin(books.as_ref(), inbox.as_ref()).await.unwrap();
    moment.effects(window, &mut keep).await.unwrap();
    moment.states(window, &mut keep).await.unwrap();
    moment.events(window, &mut keep).await.unwrap();
    moment.end().await.unwrap();
    let mut rows: Vec<String> = rows.iter().map(|row| row.trim_end().to_owned()).collect();
    rows.sort();
    rows
}

/// The body of the first event, where it is kept.
async fn body(settings: &Settings) -> Option<String> {
    let scope = recon::record::Scope::new("stripe", "", "live");
    let inbox = Inbox::open(settings).await.unwrap()?;
    let body = inbox.body(&scope, "evt_1").await.unwrap()?;
    Some(format!("body {}", String::from_utf8(body).unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_proposed_reads_these_very_rows() {
    for (number, shape) in SHAPES.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let books = Books::new(shape.kind, folder.path());
        books.run_sql(shape.sql).await;
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.current_dir(folder.path()).env_clear().env("BOOKS_URL", books.url());
        let output = command.args(["init", "--from-env", "BOOKS_URL"]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{number}: {said}{}", String::from_utf8_lossy(&output.stderr));
        let path = folder.path().join("recon.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let environment =
            |name: &str| Some(if name == "BOOKS_URL" { books.url() } else { "rk_live_x".to_owned() });
        let settings = parse(&text, Path::new(&path), &environment).unwrap();
        let until_us = AT_US + 60_000_000;
        // Windows that meet anywhere read every row once.
        for split_us in [AT_US + 1, AT_US + 1_000, AT_US + 250_000, AT_US + 500_001] {
            let mut rows = read(&settings, Window { from_us: AT_US, until_us: split_us }).await;
            rows.extend(read(&settings, Window { from_us: split_us, until_us }).await);
            rows.extend(body(&settings).await);
            rows.sort();
            assert_eq!(rows, shape.expected, "{number}, split at +{}: {said}", split_us - AT_US);
        }
    }
}
