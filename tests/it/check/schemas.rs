//! What `recon check` makes of statements and tables that are sound, odd, or not to be seen through.

use super::{
    BODY, Doctor, EFFECTS, EVENT_KEY, INBOX, PAYMENT_KEY, deliveries, id_type, payments, statements,
};
use crate::books::{Books, Kind, on_each};
use crate::mariadb::PASSWORD;
use crate::postgres::{Cluster, Place};
use futures_util::FutureExt;
use recon::commands::Outcome;
use serde_json::Value;
use std::sync::Arc;

on_each!(
    sound_tables_are_said_to_be_sound,
    the_key_is_found_through_the_statement,
    what_cannot_be_seen_through_is_not_called_ok,
    an_effect_needs_a_key_of_its_own,
    bad_statements_and_rows_are_lines,
);

fn key(kind: Kind) -> String {
    format!("{} not null", id_type(kind))
}

async fn sound(kind: Kind) -> Doctor {
    let key = key(kind);
    let doctor = Doctor::new(kind, &[deliveries(&key, &key, EVENT_KEY), payments(kind, PAYMENT_KEY)]).await;
    doctor.query(
        "unbooked.sql",
        "select id as effect_id, 'stripe' as provider, account, 'live' as mode, charge_id as object_id, kind,
            'pending' as status from payments where amount_minor is null",
    );
    doctor
}

fn says(line: &Value) -> &str {
    line["says"].as_str().unwrap()
}

async fn sound_tables_are_said_to_be_sound(kind: Kind) {
    let doctor = sound(kind).await;
    let at = 1_769_913_000_000_000_i64;
    doctor
        .books
        .run_sql(&format!(
            "insert into deliveries values ('', 'evt_1', 'charge.succeeded', {at}, 'applied', 'x');
             insert into payments values ('1', '', 'ch_1', 'credit', 100, {at}, 'evt_1');"
        ))
        .await;
    // A file beside it belongs to SQLite's own log.
    let files = || {
        let names = std::fs::read_dir(doctor.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| !name.to_str().unwrap().starts_with("books.db-")).count()
    };
    let before = files();
    let found = doctor.check().await;
    assert_eq!(found.outcome, Outcome::Clean, "{:#?}", found.lines);
    for status in ["failing", "warning", "unreachable", "not_checked"] {
        assert_eq!(found.codes(status), Vec::<&str>::new(), "{:#?}", found.with(status));
    }
    assert!(says(found.line("event_key")).starts_with("deliveries: (account, event_id) is unique by "));
    assert!(says(found.line("effect_key")).starts_with("payments: (account, kind, charge_id) is unique by "));
    assert_eq!(found.codes("ok").iter().filter(|code| **code == "rows").count(), 4);
    // Nothing was made: not even a store.
    assert_eq!(files(), before);
}

async fn the_key_is_found_through_the_statement(kind: Kind) {
    let id = key(kind);
    // The event's key without its account: nothing is named in [check].
    let keys = format!("{EVENT_KEY}, unique (event_id, at)");
    let doctor = Doctor::new(kind, &[deliveries(&id, &id, &keys), payments(kind, PAYMENT_KEY)]).await;
    let found = doctor.check().await;
    assert_eq!(found.line("event_key")["status"], "ok", "the better one of two: {:#?}", found.lines);
    // Through a join, an alias and a select in the from.
    let joined = INBOX
        .replace(
            "from deliveries",
            "from (select * from deliveries) d join payments p on p.event_id = d.event_id",
        )
        .replace("where at >= :from_us and at <", "where d.at >= :from_us and d.at <")
        .replace(" account, 'live'", " d.account, 'live'")
        .replace("event_id, type", "d.event_id, type")
        .replace("at as received", "d.at as received");
    doctor.query("inbox.sql", &joined);
    let found = doctor.check().await;
    let status = found.line("event_key")["status"].as_str().unwrap();
    // MariaDB names the alias.
    assert_eq!(status, kind.pick("ok", "ok", "not_checked"), "{:#?}", found.lines);
    // The statement makes the account of something: it may be the column `account` of the index.
    doctor
        .query("inbox.sql", &INBOX.replace(" account, 'live'", " coalesce(account, '') as account, 'live'"));
    let line = found_line(&doctor, "key_too_wide").await;
    assert_eq!(line["status"], "not_checked");
    let hint = line["hint"].as_str().unwrap();
    assert!(hint.contains("[check] event_key = \"deliveries (account, event_id)\""), "{hint}");
    doctor.configure("[check]\nevent_key = \"deliveries (account, event_id)\"\n");
    assert_eq!(found_line(&doctor, "event_key").await["status"], "ok");
    doctor.configure("[check]\nevent_key = \"delivery (account, event_id)\"\n");
    let line = found_line(&doctor, "key_unknown").await;
    assert!(says(&line).contains("there is no table delivery"), "{line}");
    doctor.configure("[check]\nevent_key = \"deliveries (account, evnt_id)\"\n");
    let line = found_line(&doctor, "key_unknown").await;
    assert!(says(&line).contains("no column evnt_id"), "{line}");
}

async fn found_line(doctor: &Doctor, check: &str) -> Value {
    doctor.check().await.line(check).clone()
}

async fn what_cannot_be_seen_through_is_not_called_ok(kind: Kind) {
    let doctor = sound(kind).await;
    let id = key(kind);
    // Nothing is unique in the second table: each of these statements reads from it, too or only.
    let other = deliveries(&id, &id, "").replace("create table deliveries", "create table raw_deliveries");
    doctor.books.run_sql(&other).await;
    doctor.books.run_sql("create view shown as select * from raw_deliveries").await;
    let plain = INBOX.trim();
    let union = format!("{plain} union all {}", plain.replace("deliveries", "raw_deliveries"));
    let made = plain.replace("event_id, type", "concat(event_id, '') as event_id, type");
    let made =
        if kind == Kind::Sqlite { made.replace("concat(event_id, '')", "event_id || ''") } else { made };
    // The select in the from is called as the sound table is.
    let alias = plain.replace("from deliveries", "from (select * from raw_deliveries) deliveries");
    let cte = format!("with deliveries as (select * from raw_deliveries) {plain}");
    for (text, expected) in [
        (union, "no_key failing"),
        (made, "event_key not_checked"),
        (
            plain.replace("from deliveries", "from shown"),
            kind.pick("no_key failing", "event_key not_checked", "event_key not_checked"),
        ),
        (alias, kind.pick("no_key failing", "no_key failing", "event_key not_checked")),
        (cte, kind.pick("no_key failing", "no_key failing", "event_key not_checked")),
    ] {
        doctor.query("inbox.sql", &text);
        let found = doctor.check().await;
        let (check, status) = expected.split_once(' ').unwrap();
        let line = found.line(check);
        assert_eq!(line["status"], status, "{text}: {:#?}", found.lines);
        if status == "not_checked" {
            assert!(line["hint"].as_str().unwrap().contains("[check] event_key = "), "{line}");
        } else {
            assert!(says(line).starts_with("raw_deliveries: "), "{line}");
        }
    }
    // Each table of a list is looked at.
    doctor.configure(
        "[check]\nevent_key = [\"deliveries (account, event_id)\", \"raw_deliveries (account, event_id)\"]\n",
    );
    let found = doctor.check().await;
    assert_eq!(found.line("event_key")["status"], "ok");
    assert!(says(found.line("no_key")).starts_with("raw_deliveries: "), "{:#?}", found.lines);
}

async fn an_effect_needs_a_key_of_its_own(kind: Kind) {
    let id = key(kind);
    let tables = [deliveries(&id, &id, EVENT_KEY), payments(kind, "unique (event_id)")];
    let doctor = Doctor::new(kind, &tables).await;
    // Two events tell of one payment, and each is booked once.
    for (row, event) in [("1", "evt_1"), ("2", "evt_2")] {
        let sql = format!("insert into payments values ('{row}', '', 'ch_1', 'credit', 100, 1, '{event}')");
        doctor.books.run_sql(&sql).await;
    }
    doctor.books.run_sql("delete from payments").await;
    let found = doctor.check().await;
    assert_eq!(found.codes("failing"), ["no_key"], "{:#?}", found.lines);
    let line = found.line("no_key");
    assert!(says(line).starts_with("payments: nothing makes (account, kind, charge_id) unique"), "{line}");
    // Reports alone rely on nothing.
    doctor.configure("[check]\nown_tables = \"warn\"\n");
    let found = doctor.check().await;
    assert_eq!((found.outcome, found.codes("warning")), (Outcome::Clean, vec!["no_key"]));
    doctor.configure("");
    for sql in statements(line) {
        doctor.books.run_sql(&sql).await;
    }
    assert_eq!(doctor.check().await.outcome, Outcome::Clean);
}

async fn bad_statements_and_rows_are_lines(kind: Kind) {
    let doctor = sound(kind).await;
    let at = 1_769_913_000_000_000_i64;
    let row = format!("insert into payments values ('1', '', 'ch_1', 'credit', 100, {at}, 'evt_1')");
    doctor.books.run_sql(&row).await;
    doctor.query("effects.sql", &EFFECTS.replace("amount_minor", "'10.999' as amount"));
    doctor.query("inbox.sql", &INBOX.replace("state as status", "state as stat"));
    doctor.query("inbox_body.sql", &BODY.replace("from deliveries", "from nowhere"));
    let found = doctor.check().await;
    assert_eq!(found.outcome, Outcome::Config);
    assert_eq!(found.codes("failing"), ["statement", "statement", "rows"], "{:#?}", found.with("failing"));
    let texts: Vec<&str> = found.with("failing").into_iter().map(says).collect();
    assert!(texts[0].contains("inbox.sql: the column status is missing"), "{}", texts[0]);
    assert!(texts[1].contains("inbox_body.sql: the database refuses it"), "{}", texts[1]);
    assert!(texts[2].contains("row effect_id=1: column amount"), "{}", texts[2]);
}

/// An unlogged table is empty after a crash; a role that may select and nothing else is told so, and of partitions what
/// a unique index there can be.
#[tokio::test]
async fn an_unlogged_table_a_partitioned_one_and_a_role_that_only_reads() {
    let cluster = Cluster::own();
    let place = Place::on(Arc::clone(&cluster));
    let url = place.url();
    let text = "text not null".to_owned();
    let unlogged = deliveries(&text, &text, EVENT_KEY).replace("create table", "create unlogged table");
    let books = Books::Cluster(place);
    let doctor = Doctor::on(Kind::Postgres, books, &[unlogged, payments(Kind::Postgres, PAYMENT_KEY)]).await;
    let reader = "create role reader login; grant usage on schema public to reader;
        grant select on all tables in schema public to reader";
    doctor.books.run_sql(reader).await;
    doctor.write("books.url", &url.replace("recon@", "reader@"));
    let insert = "insert into deliveries (account, event_id) values ('', 'evt_1')";
    let crash = || {
        cluster.stop();
        cluster.start_again();
    };
    doctor.books.run_sql(insert).await;
    crash();
    // It is new again.
    doctor.books.run_sql(insert).await;
    let found = doctor.check().await;
    assert_eq!(found.codes("failing"), ["emptied_by_crash"], "{:#?}", found.lines);
    for sql in statements(found.line("emptied_by_crash")) {
        doctor.books.run_sql(&sql).await;
    }
    crash();
    let again = std::panic::AssertUnwindSafe(doctor.books.run_sql(insert)).catch_unwind().await;
    assert!(again.is_err(), "it was there after the second crash");
    assert_eq!(doctor.check().await.outcome, Outcome::Clean);
    // A partitioned table is unique within each partition only, by what parts it.
    let parted = deliveries(&text, &text, "unique (event_id, at)") + " partition by range (at)";
    for sql in [
        "drop table deliveries",
        &parted,
        "create table early partition of deliveries for values from (0) to (100)",
        "create table late partition of deliveries for values from (100) to (200)",
        "insert into deliveries (account, event_id, at) values ('', 'evt_1', 1), ('', 'evt_1', 101)",
        "grant select on deliveries to reader",
    ] {
        doctor.books.run_sql(sql).await;
    }
    let found = doctor.check().await;
    let line = found.line("key_too_wide");
    assert_eq!(line["status"], "failing");
    assert!(statements(line).is_empty(), "no index of that table can put it right: {line}");
    assert!(line["hint"].as_str().unwrap().contains("a table of their own"), "{line}");
}

/// Files are no tables: nothing is inserted into them.
#[tokio::test]
async fn sides_from_files_are_read_and_no_key_is_asked_of_them() {
    let doctor = sound(Kind::Sqlite).await;
    doctor.write(
        "events.csv",
        "account,event_id,type,at,state\n,evt_1,charge.succeeded,1769913000000000,done\n",
    );
    doctor.query(
        "inbox.sql",
        &INBOX.replace("at >=", "cast(at as integer) >=").replace("at <", "cast(at as integer) <"),
    );
    doctor.query("inbox_body.sql", "select null as body from deliveries where :event_id = event_id");
    let provider = "[[provider]]\nname = \"stripe\"\nkind = \"github\"\n";
    let files =
        "[inbox]\nurl = \"files\"\n[inbox.files]\ndeliveries = \"events.csv\"\n[local]\nurl = \"none\"\n";
    doctor.write("recon.toml", &format!("{provider}{files}"));
    let found = doctor.check().await;
    assert_eq!(found.outcome, Outcome::Clean, "{:#?}", found.lines);
    assert!(says(found.line("inbox")).contains("from files: 1 path"), "{:#?}", found.lines);
    assert!(!format!("{:?}", found.lines).contains("event_key"));
    doctor.write("events.csv", "account,event_id,type,at,state\n,evt_1,charge.succeeded,yesterday,done\n");
    assert_eq!(doctor.check().await.codes("failing"), ["rows"]);
    doctor.write("events.csv", "account,event_id\n\"evt");
    let found = doctor.check().await;
    assert_eq!(found.codes("failing"), ["inbox"], "{:#?}", found.lines);
}

/// What nobody can open is failing, what does not answer may do so later; the password is in neither.
#[tokio::test]
async fn a_side_that_is_refused_and_one_that_is_not_there() {
    let doctor = sound(Kind::MariaDb).await;
    let url = doctor.books.url();
    doctor.write("books.url", &url.replace("reader:", "nobody:"));
    let refused = doctor.check().await;
    assert_eq!((refused.outcome, refused.codes("failing")), (Outcome::Config, vec!["inbox", "books"]));
    doctor.write("books.url", &format!("mysql://reader:{PASSWORD}@127.0.0.1:9/books"));
    let gone = doctor.check().await;
    assert_eq!((gone.outcome, gone.codes("unreachable")), (Outcome::Incomplete, vec!["inbox", "books"]));
    for found in [refused, gone] {
        assert!(!format!("{:?}", found.lines).contains(PASSWORD));
    }
    let nobody = "[store]\nurl = { file = \"store.url\" }\n";
    let cluster = Cluster::shared();
    let not_there = cluster.url("not_there");
    doctor.write("books.url", &url);
    doctor.write("store.url", &not_there);
    doctor.configure(nobody);
    assert_eq!(doctor.check().await.codes("failing"), ["store"]);
    doctor.write("store.url", &not_there.replace("/recon-pg-", "/recon-no-"));
    assert_eq!(doctor.check().await.codes("unreachable"), ["store"]);
}

/// Names as an object mapper makes them, in a schema that is not the first one.
#[tokio::test]
async fn names_are_written_as_the_database_has_them() {
    for kind in [Kind::Postgres, Kind::MariaDb] {
        let id = key(kind);
        let payments = payments(kind, PAYMENT_KEY);
        let made = deliveries(&id, &id, "");
        let (table, quote) = match kind {
            Kind::Postgres => ("\"Shop\".\"WebhookEvent\"", '"'),
            _ => ("`Webhook Event`", '`'),
        };
        let event = format!("{quote}eventId{quote}");
        let made = made.replace("deliveries", table).replace("event_id", &event);
        let doctor = Doctor::new(kind, &[payments]).await;
        if kind == Kind::Postgres {
            doctor.books.run_sql("create schema \"Shop\"").await;
        }
        doctor.books.run_sql(&made).await;
        let shown = format!("{event} as event_id");
        doctor.query("inbox.sql", &INBOX.replace("deliveries", table).replace("event_id", &shown));
        doctor.query("inbox_body.sql", &format!("select body from {table} where {event} = :event_id"));
        let found = doctor.check().await;
        assert_eq!(found.codes("failing"), ["no_key"], "{:#?}", found.lines);
        for sql in statements(found.line("no_key")) {
            doctor.books.run_sql(&sql).await;
        }
        let found = doctor.check().await;
        assert_eq!(found.outcome, Outcome::Clean, "{:#?}", found.lines);
        let says = says(found.line("event_key"));
        assert!(says.contains("(account, eventId) is unique by "), "{says}");
    }
}
