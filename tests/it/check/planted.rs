//! Faults planted in a team's table of deliveries: on the real database each does the harm that is told, `recon check`
//! names exactly it, and the statements that it prints put an end to both.

use super::{BODY, Doctor, EVENT_KEY, PAYMENT_KEY, deliveries, id_type, payments, statements};
use crate::books::Kind;
use crate::mariadb::PASSWORD;
use recon::commands::Outcome;
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, SqliteConnection};

/// Whoever writes to a team's database.
enum Hand {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

impl Hand {
    async fn of(doctor: &Doctor) -> Self {
        let url = doctor.books.url();
        match doctor.kind {
            Kind::Sqlite => Self::Sqlite(SqliteConnection::connect(&url).await.unwrap()),
            Kind::Postgres => Self::Postgres(PgConnection::connect(&url).await.unwrap()),
            Kind::MariaDb => {
                let url = url.replace(&format!("reader:{PASSWORD}@"), "recon@");
                Self::MariaDb(MySqlConnection::connect(&url).await.unwrap())
            }
        }
    }

    /// Rows that it changed, or what the database says.
    async fn run(&mut self, sql: &str) -> Result<u64, String> {
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let done = match self {
            Self::Sqlite(connection) => statement.execute(connection).await.map(|done| done.rows_affected()),
            Self::Postgres(connection) => {
                statement.execute(connection).await.map(|done| done.rows_affected())
            }
            Self::MariaDb(connection) => statement.execute(connection).await.map(|done| done.rows_affected()),
        };
        done.map_err(|error| format!("{sql}: {error}"))
    }

    async fn count(&mut self) -> i64 {
        let sql = "select count(*) from deliveries";
        match self {
            Self::Sqlite(connection) => sqlx::query_scalar(sql).fetch_one(connection).await.unwrap(),
            Self::Postgres(connection) => sqlx::query_scalar(sql).fetch_one(connection).await.unwrap(),
            Self::MariaDb(connection) => sqlx::query_scalar(sql).fetch_one(connection).await.unwrap(),
        }
    }
}

/// What a fault does. Texts are literals.
#[derive(Clone, Copy, Debug)]
enum Harm {
    /// The same event goes in twice: account and id.
    Doubles(&'static str, &'static str),
    /// The second of two events is kept out.
    Merges(&'static str, &'static str),
    /// An insert that leaves repetitions out is refused altogether.
    Refuses,
    /// An event with this id is not taken.
    NotTaken(&'static str),
    /// What is rolled back stays.
    Stays,
}

const LONG: &str = "'cs_live_a1BcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgHiJkLmNoPqRsTuVwXyZaBcD1'";
const LONG_TOO: &str = "'cs_live_a1BcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgHiJkLmNoPqRsTuVwXyZaBcD2'";

impl Harm {
    /// Whether it is done. What was there before is gone afterwards.
    async fn is_done(self, hand: &mut Hand) -> bool {
        hand.run("delete from deliveries").await.unwrap();
        let insert = |account: &str, id: &str, at: u8| {
            let at = 1_769_913_000_000_000_i64 + i64::from(at);
            format!(
                "insert into deliveries (account, event_id, type, at, state)
                 values ({account}, {id}, 'charge.succeeded', {at}, 'received')"
            )
        };
        match self {
            Self::Doubles(account, id) => {
                let first = hand.run(&insert(account, id, 1)).await.is_ok();
                let second = hand.run(&insert(account, id, 2)).await.is_ok();
                first && second && hand.count().await == 2
            }
            Self::Merges(one, other) => {
                hand.run(&insert("''", one, 1)).await.unwrap();
                hand.run(&insert("''", other, 2)).await.is_err() || hand.count().await != 2
            }
            Self::Refuses => {
                let insert = |at| insert("''", "'evt_1'", at) + " on conflict (account, event_id) do nothing";
                let first = hand.run(&insert(1)).await;
                let second = hand.run(&insert(2)).await;
                assert!(first.is_err() || second == Ok(0), "{second:?}");
                first.is_err()
            }
            Self::NotTaken(id) => hand.run(&insert("''", id, 1)).await.is_err(),
            Self::Stays => {
                let sql = format!("start transaction; {}; rollback", insert("''", "'evt_1'", 1));
                hand.run(&sql).await.unwrap();
                hand.count().await == 1
            }
        }
    }
}

/// A fault: the word that names it, how the table is made, and what it does.
struct Planted {
    check: &'static str,
    status: &'static str,
    table: String,
    more: Vec<&'static str>,
    harm: Harm,
}

fn planted(check: &'static str, table: String, harm: Harm) -> Planted {
    Planted { check, status: "failing", table, more: Vec::new(), harm }
}

/// The inbox as it is read where accounts may be null.
const COALESCED: &str = "
    select 'stripe' as provider, coalesce(account, '') as account, 'live' as mode, ID as event_id, type as event_type,
        at as received_at_us, state as status
    from deliveries where at >= :from_us and at < :until_us
";

async fn are_found_and_put_right(kind: Kind, all: Vec<Planted>) {
    let doctor = Doctor::new(kind, &[payments(kind, PAYMENT_KEY)]).await;
    // Whatever type its id has, it is read as a text.
    let id = kind.pick("event_id", "cast(event_id as text)", "event_id");
    doctor.query("inbox.sql", &COALESCED.replace("ID as event_id", &format!("{id} as event_id")));
    doctor.query("inbox_body.sql", &BODY.replace("where event_id", &format!("where {id}")));
    // What the statement makes of its columns hides the key.
    doctor.configure("[check]\nevent_key = \"deliveries (account, event_id)\"\n");
    let mut hand = Hand::of(&doctor).await;
    for planted in all {
        hand.run("drop table if exists deliveries").await.unwrap();
        hand.run("drop table if exists deliveries_before").await.unwrap();
        is_found_and_put_right(&doctor, &mut hand, planted).await;
    }
}

async fn is_found_and_put_right(doctor: &Doctor, hand: &mut Hand, planted: Planted) {
    let Planted { check, status, table, more, harm } = planted;
    hand.run(&table).await.unwrap();
    for sql in more {
        // A `create index concurrently` is to fail.
        drop(hand.run(sql).await);
    }
    assert!(harm.is_done(hand).await, "{check} {harm:?}: {table}");
    hand.run("delete from deliveries").await.unwrap();
    let found = doctor.check().await;
    assert_eq!(found.codes(status), [check], "{table}: {:#?}", found.lines);
    let expected = if status == "failing" { Outcome::Config } else { Outcome::Clean };
    assert_eq!(found.outcome, expected);
    let line = found.line(check);
    for part in ["says", "story"] {
        assert!(line[part].as_str().unwrap().len() > 20, "{line}");
    }
    let says = line["says"].as_str().unwrap();
    assert!(says.starts_with("deliveries: "), "{says}");
    let fix = statements(line);
    assert!(!fix.is_empty(), "{line}");
    for sql in &fix {
        hand.run(sql).await.unwrap_or_else(|error| panic!("{fix:#?}: {error}"));
    }
    assert!(!harm.is_done(hand).await, "{check}: {fix:#?}");
    hand.run("delete from deliveries").await.unwrap();
    let found = doctor.check().await;
    assert_eq!(found.codes("failing"), Vec::<&str>::new(), "{fix:#?} {:#?}", found.lines);
    assert_eq!(found.codes("warning"), Vec::<&str>::new(), "{fix:#?} {:#?}", found.lines);
    assert_eq!((found.outcome, found.line("event_key")["status"].as_str()), (Outcome::Clean, Some("ok")));
}

/// No index at all, null everywhere, ids that are compared without case: the statements in the order in which they are
/// told put all of it right.
#[tokio::test]
async fn several_faults_at_once_are_put_right() {
    for kind in [Kind::Sqlite, Kind::Postgres, Kind::MariaDb] {
        let text = kind.pick("text collate nocase", "text", "text");
        let doctor = Doctor::new(kind, &[deliveries(text, text, ""), payments(kind, PAYMENT_KEY)]).await;
        doctor.configure("[check]\nevent_key = \"deliveries (account, event_id)\"\n");
        let mut hand = Hand::of(&doctor).await;
        hand.run("insert into deliveries (account, event_id) values (null, 'evt_0')").await.unwrap();
        let found = doctor.check().await;
        let failing = found.codes("failing");
        assert!(failing.contains(&"no_key") && failing.contains(&"key_nullable"), "{failing:?}");
        assert_eq!(failing.contains(&"key_folds_case"), kind != Kind::Postgres);
        for sql in found.lines.iter().flat_map(statements) {
            hand.run(&sql).await.unwrap();
        }
        assert_eq!(hand.count().await, 1, "no row is lost");
        for harm in [
            Harm::Doubles("null", "'evt_1'"),
            Harm::Doubles("''", "null"),
            Harm::Doubles("''", "'evt_1'"),
            FOLDED,
        ] {
            assert!(!harm.is_done(&mut hand).await, "{kind:?} {harm:?}");
        }
        assert_eq!(doctor.check().await.outcome, Outcome::Clean);
    }
}

/// As a shell does that was not told to stop at an error, twice.
#[tokio::test]
async fn statements_that_go_on_after_an_error_lose_no_row() {
    let tables = [deliveries("text not null", "text", EVENT_KEY), payments(Kind::Sqlite, PAYMENT_KEY)];
    let doctor = Doctor::new(Kind::Sqlite, &tables).await;
    doctor.configure("[check]\nevent_key = \"deliveries (account, event_id)\"\n");
    let mut hand = Hand::of(&doctor).await;
    hand.run("create index more on deliveries (at)").await.unwrap();
    hand.run("insert into deliveries (account, event_id) values ('', null), ('', 'evt_1')").await.unwrap();
    let fix = statements(doctor.check().await.line("key_nullable"));
    assert!(fix.iter().any(|sql| sql.starts_with("insert or rollback")), "{fix:#?}");
    for taken in ["", "create table deliveries_before as select * from deliveries"] {
        hand.run(taken).await.unwrap();
        for sql in &fix {
            drop(hand.run(sql).await);
        }
        assert_eq!(hand.count().await, 2, "{fix:#?}");
        assert!(hand.run("drop index more").await.is_ok(), "the index is gone");
        hand.run("create index more on deliveries (at)").await.unwrap();
    }
    // Once no row stands in the way, they do what they say.
    hand.run("drop table deliveries_before").await.unwrap();
    hand.run("delete from deliveries where event_id is null").await.unwrap();
    for sql in &fix {
        hand.run(sql).await.unwrap();
    }
    assert_eq!(hand.count().await, 1);
    assert_eq!(doctor.check().await.codes("failing"), Vec::<&str>::new());
}

const FOLDED: Harm = Harm::Merges("'evt_1AbC'", "'evt_1aBc'");

fn not_null(type_name: &str) -> String {
    format!("{type_name} not null")
}

/// What any database lets be made.
fn everywhere(kind: Kind) -> Vec<Planted> {
    let id = id_type(kind);
    let key = not_null(id);
    let (once, twice) = ("''", "'evt_1'");
    vec![
        planted("no_key", deliveries(&key, &key, ""), Harm::Doubles(once, twice)),
        planted("no_key", deliveries(&key, &key, "unique (account, at)"), Harm::Doubles(once, twice)),
        planted(
            "key_too_wide",
            deliveries(&key, &key, "unique (account, event_id, at)"),
            Harm::Doubles(once, twice),
        ),
        planted("key_nullable", deliveries(id, &key, EVENT_KEY), Harm::Doubles("null", twice)),
        planted("key_nullable", deliveries(&key, id, EVENT_KEY), Harm::Doubles(once, "null")),
    ]
}

#[tokio::test]
async fn c68_c70_each_planted_fault_of_sqlite_is_found_and_put_right() {
    let key = "text not null";
    let full = |more: &'static str| Planted {
        more: vec![more],
        ..planted("", deliveries(key, key, ""), Harm::Refuses)
    };
    let mut all = everywhere(Kind::Sqlite);
    all.extend([
        // Its primary keys may be null.
        planted(
            "key_nullable",
            deliveries(key, "text", "primary key (account, event_id)"),
            Harm::Doubles("''", "null"),
        ),
        Planted {
            check: "key_condition",
            ..full("create unique index k on deliveries (account, event_id) where event_id is not null")
        },
        Planted {
            check: "key_expression",
            harm: FOLDED,
            ..full("create unique index k on deliveries (account, lower(event_id))")
        },
        planted("key_folds_case", deliveries(key, "text collate nocase not null", EVENT_KEY), FOLDED),
        Planted {
            check: "key_folds_case",
            harm: FOLDED,
            ..full("create unique index k on deliveries (account, event_id collate nocase)")
        },
        Planted {
            check: "key_folds_case",
            harm: FOLDED,
            more: vec!["create unique index k on deliveries (account, event_id collate nocase)"],
            ..planted("", deliveries(key, key, EVENT_KEY), FOLDED)
        },
    ]);
    are_found_and_put_right(Kind::Sqlite, all).await;
}

#[tokio::test]
async fn c68_c70_each_planted_fault_of_postgres_is_found_and_put_right() {
    let key = "text not null";
    let full =
        |more: Vec<&'static str>, harm| Planted { more, ..planted("", deliveries(key, key, ""), harm) };
    let folded =
        "create collation folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";
    let on_events = "alter table deliveries alter column event_id type text collate folded";
    let twice = Harm::Doubles("''", "'evt_1'");
    let padded = Harm::Merges("'evt_1'", "'evt_1 '");
    let mut all = everywhere(Kind::Postgres);
    all.extend([
        Planted {
            check: "key_condition",
            ..full(
                vec!["create unique index k on deliveries (account, event_id) where event_id is not null"],
                Harm::Refuses,
            )
        },
        Planted {
            check: "key_expression",
            ..full(vec!["create unique index k on deliveries (account, lower(event_id))"], FOLDED)
        },
        Planted {
            check: "key_folds_case",
            more: vec![folded, on_events],
            ..planted("", deliveries(key, key, EVENT_KEY), FOLDED)
        },
        Planted {
            check: "key_folds_case",
            ..full(
                vec![folded, "create unique index k on deliveries (account, event_id collate folded)"],
                FOLDED,
            )
        },
        Planted {
            check: "key_invalid",
            ..full(
                vec![
                    "insert into deliveries (account, event_id) values ('', 'evt_1'), ('', 'evt_1')",
                    "create unique index concurrently k on deliveries (account, event_id)",
                ],
                twice,
            )
        },
        planted(
            "key_deferrable",
            deliveries(key, key, "unique (account, event_id) deferrable"),
            Harm::Refuses,
        ),
        Planted {
            check: "key_deferrable",
            more: vec!["alter table deliveries add constraint again unique (event_id, account) deferrable"],
            ..planted("", deliveries(key, key, EVENT_KEY), Harm::Refuses)
        },
        planted("id_too_short", deliveries(key, "varchar(40) not null", EVENT_KEY), Harm::NotTaken(LONG)),
        planted("id_not_text", deliveries(key, "bigint not null", EVENT_KEY), Harm::NotTaken("'evt_1'")),
        Planted {
            status: "warning",
            ..planted("key_ignores_blanks", deliveries(key, "char(255) not null", EVENT_KEY), padded)
        },
    ]);
    are_found_and_put_right(Kind::Postgres, all).await;
}

#[tokio::test]
async fn c70_each_planted_fault_of_mariadb_is_found_and_put_right() {
    let key = &not_null(id_type(Kind::MariaDb));
    let mut all = everywhere(Kind::MariaDb);
    let long = Harm::Merges(LONG, LONG_TOO);
    let engine = deliveries(key, key, EVENT_KEY) + " engine = MyISAM";
    all.extend([
        // As most tables are made: by the server's own collation.
        planted("key_folds_case", deliveries(key, "varchar(255) not null", EVENT_KEY), FOLDED),
        Planted {
            status: "warning",
            ..planted(
                "key_ignores_blanks",
                deliveries(key, "varchar(255) character set utf8mb4 collate utf8mb4_bin not null", EVENT_KEY),
                Harm::Merges("'evt_1'", "'evt_1 '"),
            )
        },
        planted("key_prefix", deliveries(key, key, "unique (account, event_id(40))"), long),
        planted(
            "long_ids_are_cut",
            deliveries(
                key,
                "varchar(60) character set utf8mb4 collate utf8mb4_nopad_bin not null",
                EVENT_KEY,
            ),
            long,
        ),
        planted(
            "id_not_text",
            deliveries(key, "bigint not null", EVENT_KEY),
            Harm::Merges("'evt_1'", "'evt_2'"),
        ),
        planted("no_transactions", engine, Harm::Stays),
    ]);
    are_found_and_put_right(Kind::MariaDb, all).await;
}
