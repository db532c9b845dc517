//! What holds of every database that a side is read from: ids are their bytes, a moment is one moment, nothing is left
//! behind, and what goes wrong is one line with the right exit code.

use crate::books::{
    AT_US, Books, EFFECTS, INBOX, Kind, Team, WINDOW, at_once, keep_effect, keep_event, on_each, scope,
    trouble, unusable,
};
use crate::mariadb::Server;
use crate::postgres::{Cluster, Place};
use recon::config::parse;
use recon::gather::{Dialect, Inbox, LocalBooks, Moment};
use recon::record::iso_exponent;
use std::collections::BTreeSet;
use std::sync::Arc;

on_each!(
    c70_ids_that_differ_in_case_or_blanks_are_two,
    a_moment_is_one_moment_of_books_and_inbox,
    nothing_is_set_that_outlives_a_transaction,
    a_statement_that_takes_too_long_is_stopped_and_named,
    what_nobody_can_open_is_named_without_the_password,
    a_lookup_that_the_database_cannot_do_is_found_before_anything_is_read,
    a_null_in_a_key_and_a_decimal_that_is_no_amount_are_named,
);

async fn c70_ids_that_differ_in_case_or_blanks_are_two(kind: Kind) {
    let rows = format!(
        "insert into deliveries values ('evt_1AbC', 'a', {AT_US}, 'done', {}), ('evt_1aBc', 'b', {AT_US}, 'new', {}),
            ('evt_1', 'c', {AT_US}, 'done', {}), ('evt_1 ', 'd', {AT_US}, 'new', {});
         insert into payments (id, ext, word, amount_text, currency, event) values
            (1, 'ch_1AbC', 'credit', '1.00', 'usd', 'evt_1AbC'), (2, 'ch_1aBc', 'credit', '2.00', 'usd', 'evt_1aBc'),
            (3, 'ch_1', 'credit', '3.00', 'usd', 'evt_1'), (4, 'ch_1 ', 'credit', '4.00', 'usd', 'evt_1 ');",
        kind.bytes("01"),
        kind.bytes("02"),
        kind.bytes("03"),
        kind.bytes("04")
    );
    let team = Team::new(kind, &rows).await;
    let ids: Vec<String> = team.inbox().await.unwrap().into_iter().map(|event| event.event_id).collect();
    assert_eq!(ids, ["evt_1", "evt_1 ", "evt_1AbC", "evt_1aBc"]);
    let inbox = Inbox::open(&team.settings).await.unwrap().unwrap();
    let books = team.local().await.unwrap();
    let mut moment = Moment::begin(Some(&books), Some(&inbox)).await.unwrap();
    for (event, object, number) in
        [("evt_1AbC", "ch_1AbC", 1), ("evt_1aBc", "ch_1aBc", 2), ("evt_1", "ch_1", 3), ("evt_1 ", "ch_1 ", 4)]
    {
        let (mut events, mut by_object, mut by_event) = (Vec::new(), Vec::new(), Vec::new());
        let one = |id: &str| BTreeSet::from([id.to_owned()]);
        let mut keep = |fact| keep_event(&mut events, fact);
        moment.events_of(&scope(), &one(event), &mut keep).await.unwrap();
        let mut keep = |fact| keep_effect(&mut by_object, fact);
        moment.effects_of(&scope(), &one(object), &mut keep).await.unwrap();
        let mut keep = |fact| keep_effect(&mut by_event, fact);
        moment.effects_of_events(&scope(), &one(event), &mut keep).await.unwrap();
        assert_eq!(events.iter().map(|row| &*row.event_id).collect::<Vec<_>>(), [event]);
        for found in [by_object, by_event] {
            let found: Vec<_> = found.iter().map(|row| (&*row.object_id, row.amount_minor)).collect();
            assert_eq!(found, [(object, number * 100)]);
        }
    }
    moment.end().await.unwrap();
    // A body is asked for with the team's own comparison: it must say which event it is of, or be the only one.
    if kind == Kind::MariaDb {
        let error = unusable(inbox.body(&scope(), "evt_1AbC").await);
        assert!(error.message.contains("inbox_body.sql: gives more than one row for evt_1AbC"), "{error}");
        team.write_query(
            "inbox_body.sql",
            "select event_id, body from deliveries where event_id = :event_id and :provider = 'stripe'",
        );
    }
    let inbox = Inbox::open(&team.settings).await.unwrap().unwrap();
    for (event, body) in [("evt_1AbC", 1), ("evt_1aBc", 2), ("evt_1", 3), ("evt_1 ", 4)] {
        assert_eq!(inbox.body(&scope(), event).await.unwrap(), Some(vec![body]), "{event}");
    }
}

async fn a_moment_is_one_moment_of_books_and_inbox(kind: Kind) {
    let rows = "insert into payments (id, ext, word, amount_text, currency) values (1, 'ch_1', 'credit', '1.00', 'usd');";
    let team = Team::new(kind, rows).await;
    if kind == Kind::Sqlite {
        team.run_sql("pragma journal_mode = wal").await;
    }
    team.write_query(
        "states.sql",
        "select 'stripe' as provider, '' as account, 'live' as mode, ext as object_id, 'paid' as status,
            null as refunded_minor, 1769913000000000 + id as updated_at_us
         from payments where 1769913000000000 + id >= :from_us and 1769913000000000 + id < :until_us",
    );
    let inbox = Inbox::open(&team.settings).await.unwrap().unwrap();
    let books = team.local().await.unwrap();
    let mut moment = Moment::begin(Some(&books), Some(&inbox)).await.unwrap();
    assert_eq!(moment.effects(WINDOW, &mut |_| Ok(())).await.unwrap(), 1);
    let later = format!(
        "insert into payments (id, ext, word, amount_text, currency) values (2, 'ch_2', 'credit', '1.00', 'usd');
         insert into deliveries values ('evt_1', 'x', {AT_US}, 'new', null);"
    );
    team.run_sql(&later).await;
    let ids = BTreeSet::from(["ch_2".to_owned()]);
    assert_eq!(moment.states(WINDOW, &mut |_| Ok(())).await.unwrap(), 1, "the first statement's moment");
    assert_eq!(moment.effects_of(&scope(), &ids, &mut |_| Ok(())).await.unwrap(), 0);
    assert_eq!(moment.events(WINDOW, &mut |_| Ok(())).await.unwrap(), 0, "the inbox is in the same database");
    moment.end().await.unwrap();
    let mut moment = Moment::begin(Some(&books), Some(&inbox)).await.unwrap();
    assert_eq!(moment.states(WINDOW, &mut |_| Ok(())).await.unwrap(), 2);
    assert_eq!(moment.effects_of(&scope(), &ids, &mut |_| Ok(())).await.unwrap(), 1);
    assert_eq!(moment.events(WINDOW, &mut |_| Ok(())).await.unwrap(), 1);
    moment.end().await.unwrap();
}

/// What the session says of itself, seen by a statement of the team.
async fn nothing_is_set_that_outlives_a_transaction(kind: Kind) {
    let mut team = Team::new(kind, "").await;
    team.limited("statement_timeout = \"90s\"");
    let said = kind.pick(
        "''",
        "concat((select count(*) from pg_prepared_statements), ' ', current_setting('statement_timeout'), ' ',
            current_setting('transaction_read_only'), ' ', current_setting('transaction_isolation'))",
        "concat(@@sql_mode, ' ', @@time_zone, ' ', @@max_statement_time, ' ', @@tx_isolation, ' ', 1 || 2,
            ' ', cast(1 as unsigned) - 2)",
    );
    let text = format!(
        "select 'stripe' as provider, '' as account, 'live' as mode, 'pi_1' as object_id, 'paid' as status,
            null as refunded_minor, {AT_US} as updated_at_us, {said} as changed_by
         from (select 1 as one) a where :from_us <= :until_us"
    );
    team.write_query("states.sql", &text);
    let books = team.local().await.unwrap();
    for _ in 0..3 {
        let mut seen = Vec::new();
        let mut keep = |fact| {
            if let recon::record::Fact::LocalState(state) = fact {
                seen.push(state.changed_by);
            }
            Ok(())
        };
        at_once::states(&books, WINDOW, &mut keep).await.unwrap();
        let expected = kind.pick(
            "",
            "0 90s on repeatable read",
            "PIPES_AS_CONCAT,ONLY_FULL_GROUP_BY,NO_UNSIGNED_SUBTRACTION,STRICT_ALL_TABLES +00:00 90.000000 \
             REPEATABLE-READ 12 -1",
        );
        assert_eq!(seen, [expected]);
    }
}

async fn a_statement_that_takes_too_long_is_stopped_and_named(kind: Kind) {
    let mut team = Team::new(kind, "").await;
    team.limited("statement_timeout = \"1s\"");
    let slow = kind.pick(
        "(with recursive n(i) as (select 1 union all select i + 1 from n where i < 4000000000) select count(*) from n)",
        "(select count(*) from pg_sleep(60))",
        "benchmark(100000000000, md5('x'))",
    );
    let rows = "insert into payments (id, ext, word, amount_text, currency) values (1, 'ch_1', 'credit', '1.00', 'usd');";
    team.run_sql(rows).await;
    team.write_query(
        "effects.sql",
        &EFFECTS.replace("'a column more' as extra", &format!("{slow} as extra")),
    );
    let error = trouble(team.effects().await);
    assert!(error.contains("effects.sql: stopped by the time limit for statements (1 s)"), "{error}");
    // The side can still be read.
    team.write_query("effects.sql", EFFECTS);
    assert_eq!(team.effects().await.unwrap().len(), 1);
}

async fn what_nobody_can_open_is_named_without_the_password(kind: Kind) {
    let team = Team::new(kind, "").await;
    let url = team.books.url();
    let wrong: Vec<(String, &str)> = match kind {
        Kind::Sqlite => {
            std::fs::write(
                team.dir.path().join("odd.db"),
                "this is no database, but a text of some length".repeat(40),
            )
            .unwrap();
            vec![
                (url.replace("books.db", "other.db"), "there is no such file"),
                (url.replace("books.db", "odd.db"), "file is not a database"),
            ]
        }
        Kind::Postgres => vec![
            (url.replace("recon@", "nobody@"), "role \"nobody\" does not exist"),
            (url.replace("/store_", "/storage_"), "does not exist"),
        ],
        Kind::MariaDb => vec![
            (url.replace("not-shown-7", "wrong-not-shown-7"), "Access denied for user 'reader'"),
            (url.replace("reader:", "nobody:"), "Access denied for user 'nobody'"),
            (url.replace("/books_", "/cooks_"), "Access denied for user 'reader'"),
        ],
    };
    for (url, message) in wrong {
        let text = "[[provider]]\nname = \"stripe\"\napi_key = { env = \"KEY\" }\n[local]\nurl = { env = \"BOOKS\" }\n";
        let environment = |name: &str| Some(if name == "BOOKS" { url.clone() } else { "key".to_owned() });
        let settings = parse(text, &team.dir.path().join("recon.toml"), &environment).unwrap();
        let dialect = Dialect::stripe(iso_exponent);
        let error = unusable(LocalBooks::open(&settings, &team.store, dialect, WINDOW).await);
        assert!(error.message.contains(message), "{error}");
        assert!(!error.hint.is_empty());
    }
    let nobody_there = match kind {
        Kind::Sqlite => return,
        Kind::Postgres => url.replace("/recon-pg-", "/recon-no-"),
        Kind::MariaDb => "mysql://reader:not-shown-7@127.0.0.1:9/books".to_owned(),
    };
    let text =
        "[[provider]]\nname = \"stripe\"\napi_key = { env = \"KEY\" }\n[inbox]\nurl = { env = \"BOOKS\" }\n";
    let environment =
        |name: &str| Some(if name == "BOOKS" { nobody_there.clone() } else { "key".to_owned() });
    let settings = parse(text, &team.dir.path().join("recon.toml"), &environment).unwrap();
    let error = trouble(Inbox::open(&settings).await);
    assert!(error.contains("[inbox] url: ") && error.contains("cannot be reached"), "{error}");
}

async fn a_lookup_that_the_database_cannot_do_is_found_before_anything_is_read(kind: Kind) {
    let team = Team::new(kind, "").await;
    let (from, to) = match kind {
        // A number may be compared with a text in SQLite and MariaDB, and means what its digits say.
        Kind::Sqlite | Kind::MariaDb => {
            ("1769913000000000 + id as applied", "no_such_function(id) as applied")
        }
        Kind::Postgres => ("ext as object_id", "id as object_id"),
    };
    team.write_query("effects.sql", &EFFECTS.replace(from, to));
    let error = unusable(team.local().await);
    let message =
        kind.pick("no such function", "asked for one object_id, which must be a text", "no_such_function");
    assert!(error.message.contains(message), "{error}");
}

async fn a_null_in_a_key_and_a_decimal_that_is_no_amount_are_named(kind: Kind) {
    let rows = format!(
        "insert into deliveries values ('evt_1', 'a', {AT_US}, 'done', null), (null, 'b', {AT_US}, 'new', null);"
    );
    let team = Team::new(kind, &rows).await;
    let error = unusable(team.inbox().await);
    assert!(error.message.contains("row number 2: column event_id is empty or null"), "{error}");
    team.run_sql(
        "insert into payments (id, ext, word, value, currency) values (1, 'ch_1', 'credit', 20.50, 'jpy');",
    )
    .await;
    team.write_query("effects.sql", &EFFECTS.replace("amount_text as amount", "value as amount"));
    let error = unusable(team.effects().await);
    let message =
        kind.pick("is a floating-point number", "has more than 0 decimals", "has more than 0 decimals");
    assert!(
        error.message.contains("row effect_id=1: column amount") && error.message.contains(message),
        "{error}"
    );
}

const MANY: u64 = 300_000;

/// Reads many rows; after the first ones the server goes away.
async fn goes_away(team: &Team, kill: impl Fn() + Sync) {
    let books = team.local().await.unwrap();
    let mut seen = 0_u64;
    let mut sink = |_| {
        seen += 1;
        if seen == 1_000 {
            kill();
        }
        Ok(())
    };
    let window = recon::record::Window { until_us: AT_US + 1_000_000, ..WINDOW };
    let error = trouble(at_once::effects(&books, window, &mut sink).await);
    assert!(error.contains("effects.sql: "), "{error}");
    assert!(error.contains("broke") || error.contains("stopped it"), "{error}");
    assert!((1_000..MANY).contains(&seen), "{seen}");
}

#[tokio::test]
async fn a_mariadb_that_is_killed_in_the_middle_is_one_line() {
    let server = Server::own();
    let books = Books::on(Arc::clone(&server));
    let rows = format!(
        "insert into payments (id, ext, word, amount_text, currency)
         select seq, concat('ch_', seq), 'credit', '1.00', 'usd' from seq_1_to_{MANY}"
    );
    let team = Team::with(Kind::MariaDb, books, tempfile::tempdir().unwrap(), &rows).await;
    goes_away(&team, || server.kill()).await;
}

#[tokio::test]
async fn a_postgres_that_is_stopped_in_the_middle_is_one_line() {
    let cluster = Cluster::own();
    let books = Books::Cluster(Place::on(Arc::clone(&cluster)));
    let rows = format!(
        "insert into payments (id, ext, word, amount_text, currency)
         select i, concat('ch_', i), 'credit', '1.00', 'usd' from generate_series(1, {MANY}) i"
    );
    let team = Team::with(Kind::Postgres, books, tempfile::tempdir().unwrap(), &rows).await;
    goes_away(&team, || cluster.stop()).await;
    // Its database is dropped where it was made.
    cluster.start_again();
}

/// An enum's type is unknown to a connection that is new, and asking for it makes PostgreSQL forget the statement.
#[tokio::test]
async fn every_connection_knows_the_types_of_a_postgres() {
    let team = Team::new(Kind::Postgres, "create type state_word as enum ('done', 'new')").await;
    let rows = format!("insert into deliveries values ('evt_1', 'x', {AT_US}, 'done', null)");
    team.run_sql(&rows).await;
    team.write_query("inbox.sql", &INBOX.replace("state as status", "cast(state as state_word) as status"));
    let inbox = Inbox::open(&team.settings).await.unwrap().unwrap();
    // Each holds a connection of its own.
    let mut moments = Vec::new();
    for _ in 0..3 {
        let mut moment = Moment::begin(None, Some(&inbox)).await.unwrap();
        assert_eq!(moment.events(WINDOW, &mut |_| Ok(())).await.unwrap(), 1);
        moments.push(moment);
    }
}

const MARIADB_BOOKINGS: &str = "
    create table bookings (id uuid primary key, ext varchar(80) collate utf8mb4_bin, raw varbinary(80),
        word enum('credit', 'refund', 'fee'), value decimal(14, 2), currency char(3), booked datetime(6),
        cents int unsigned, big bigint unsigned, tiny tinyint(1) unsigned, rate double, body json, old varchar(20)
        character set latin1);
    insert into bookings values
        ('00010203-0405-0607-0809-0a0b0c0d0e0f', 'ch_1', 'evt_1', 'credit', 12345.60, 'usd',
            '2026-02-01 02:30:00.000123', 4294967295, 18446744073709551615, 200, 0.5, '{\"a\": 1}', 'caf\u{e9}'),
        ('10010203-0405-0607-0809-0a0b0c0d0e0f', 're_1', null, 'refund', 0.01, 'EUR',
            '2026-02-01 02:30:00', 8, 7, 1, 0.5, null, null);
";
const MARIADB_EFFECTS: &str = "
    # what the books did
    select id as effect_id, 'stripe' as provider, '' as account, 'live' as mode, ext as object_id, word as kind,
        value as amount, currency, cast(unix_timestamp(booked) * 1000000 as signed) as applied_at_us, raw as event_id,
        null as corrects_effect_id
    from bookings
    where booked >= from_unixtime(:from_us / 1000000) and booked < from_unixtime(:until_us / 1000000) and 'it\\'s' <> ':x'
";

#[tokio::test]
async fn values_of_mariadb_are_read_exactly() {
    let team = Team::new(Kind::MariaDb, MARIADB_BOOKINGS).await;
    team.write_query("effects.sql", MARIADB_EFFECTS);
    let effects = team.effects().await.unwrap();
    let seen: Vec<_> = effects
        .iter()
        .map(|row| (&*row.effect_id, &*row.object_id, row.kind.as_str(), row.amount_minor, &*row.currency))
        .collect();
    assert_eq!(
        seen,
        [
            ("10010203-0405-0607-0809-0a0b0c0d0e0f", "re_1", "refund", 1, "eur"),
            ("00010203-0405-0607-0809-0a0b0c0d0e0f", "ch_1", "credit", 1_234_560, "usd"),
        ]
    );
    assert_eq!((effects[0].applied_at_us, effects[1].applied_at_us), (AT_US, AT_US + 123));
    assert_eq!((&*effects[0].event_id, &*effects[1].event_id), ("", "evt_1"));
    // Over all time, which ends before `from_unixtime` gives null.
    let books = team.local().await.unwrap();
    let mut moment = Moment::begin(Some(&books), None).await.unwrap();
    let ids = BTreeSet::from(["ch_1".to_owned()]);
    assert_eq!(moment.effects_of(&scope(), &ids, &mut |_| Ok(())).await.unwrap(), 1);
    moment.end().await.unwrap();
    let states =
        "select 'stripe' as provider, '' as account, 'live' as mode, ext as object_id, 'paid' as status,
            COLUMN as refunded_minor, cast(unix_timestamp(booked) * 1000000 as signed) as updated_at_us,
            old as changed_by
        from bookings where :from_us < :until_us and big > 7";
    for (column, minor) in
        [("cents", 4_294_967_295), ("tiny", 200), ("big - big", 0), ("cast(cents as char)", 4_294_967_295)]
    {
        team.write_query("states.sql", &states.replace("COLUMN", column));
        let state = &team.states().await.unwrap()[0];
        assert_eq!((state.refunded_minor, &*state.changed_by), (Some(minor), "caf\u{e9}"), "{column}");
    }
    team.write_query("states.sql", &states.replace("ext as", "big as").replace("COLUMN", "null"));
    assert_eq!(team.states().await.unwrap()[0].object_id, "18446744073709551615");
    for (column, message) in [
        ("booked", "is a date"),
        ("rate", "must be a whole number, and is not"),
        ("big", "must be a whole number"),
        ("unix_timestamp(booked) * 1000000", "must be a whole number"),
    ] {
        team.write_query("states.sql", &states.replace("COLUMN", column));
        let error = unusable(team.states().await);
        assert!(
            error.message.contains("column refunded_minor") && error.message.contains(message),
            "{error}"
        );
        assert!(column != "booked" || error.hint.contains("unix_timestamp"), "{}", error.hint);
    }
    team.write_query("inbox_body.sql", "select body from bookings where raw = :event_id");
    let inbox = Inbox::open(&team.settings).await.unwrap().unwrap();
    assert_eq!(inbox.body(&scope(), "evt_1").await.unwrap().unwrap(), b"{\"a\": 1}");
}

#[tokio::test]
async fn a_mariadb_is_read_over_the_network_by_who_may_only_read() {
    let server = Server::shared();
    let database = server.database();
    let team = Team::with(
        Kind::MariaDb,
        Books::Server(Arc::clone(&server), database.clone()),
        tempfile::tempdir().unwrap(),
        "insert into payments (id, ext, word, amount_text, currency) values (1, 'ch_1', 'credit', '1.00', 'usd');",
    )
    .await;
    let url = server.tcp_url(&database);
    let text =
        "[[provider]]\nname = \"stripe\"\napi_key = { env = \"KEY\" }\n[local]\nurl = { env = \"BOOKS\" }\n";
    let environment = |name: &str| Some(if name == "BOOKS" { url.clone() } else { "key".to_owned() });
    let settings = parse(text, &team.dir.path().join("recon.toml"), &environment).unwrap();
    let dialect = Dialect::stripe(iso_exponent);
    let books = LocalBooks::open(&settings, &team.store, dialect, WINDOW).await.unwrap().unwrap();
    assert_eq!(at_once::effects(&books, WINDOW, &mut |_| Ok(())).await.unwrap(), 1);
    // A table that it was not let into is told before anything is read.
    let text = EFFECTS.replace("from payments", "from mysql.user, payments");
    team.write_query("effects.sql", &text);
    let dialect = Dialect::stripe(iso_exponent);
    let error = unusable(LocalBooks::open(&settings, &team.store, dialect, WINDOW).await);
    assert!(error.message.contains("SELECT command denied"), "{error}");
}

/// Run alone: `cargo test --test it -- --ignored --nocapture a_million_rows`.
#[tokio::test]
#[ignore = "measures the memory of this process"]
async fn a_million_rows_are_never_all_in_memory() {
    const ROWS: u64 = 1_000_000;
    let rows = format!(
        "insert into deliveries
         select concat('evt_', seq), 'charge.succeeded', {AT_US}, 'done', null from seq_1_to_{ROWS}"
    );
    let team = Team::new(Kind::MariaDb, &rows).await;
    let inbox = Inbox::open(&team.settings).await.unwrap().unwrap();
    let resident_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = resident_kib();
    let (mut seen, mut most) = (0_u64, before);
    let began = std::time::Instant::now();
    let mut sink = |_| {
        seen += 1;
        if seen % 10_000 == 0 {
            most = most.max(resident_kib());
        }
        Ok(())
    };
    at_once::events(&inbox, WINDOW, &mut sink).await.unwrap();
    eprintln!("{seen} rows in {:?}, {before} KiB before, {most} KiB at most", began.elapsed());
    assert_eq!(seen, ROWS);
    assert!(most < before + 32 * 1024, "{before} KiB before, {most} KiB at most");
}
