//! Books that a team keeps in a PostgreSQL of its own: read through its statements, as they stand there,
//! and nothing but read.

use crate::books::at_once;
use crate::postgres::Place;
use recon::config::{Settings, Unusable, parse};
use recon::gather::{Dialect, Inbox, LocalBooks};
use recon::record::{Fact, LocalEffect, Scope, Window};
use recon::store::{Access, Database, Store};
use std::collections::BTreeSet;

const AT_US: i64 = 1_769_913_000_000_000;
const WINDOW: Window = Window { from_us: AT_US - 1_000, until_us: AT_US + 1_000 };

const TABLES: &str = "
    create type word as enum ('credit', 'refund', 'fee');
    create table bookings (id uuid primary key, ext varchar(80), kind word, value numeric(14, 2), currency char(3),
        booked timestamptz, cents integer, rate double precision);
    create table deliveries (event_id text, state text, at bigint, body jsonb, raw bytea);
    insert into bookings values
        ('00010203-0405-0607-0809-0a0b0c0d0e0f', 'ch_1', 'credit', 12345.60, 'usd', to_timestamp(1769913000), 7, 0.5),
        ('10010203-0405-0607-0809-0a0b0c0d0e0f', 're_1', 'refund', 0.01, 'EUR', to_timestamp(1769913000), 8, 0.5);
    insert into deliveries values ('evt_1', 'done', 1769913000000000, '{\"a\": 1}', '\\x00ff'),
        ('evt_2', 'new', 1769913000000001, null, null);
";
const EFFECTS: &str = "
    select id as effect_id, 'stripe' as provider, '' as account, 'live' as mode, ext as object_id, kind,
        value as amount, currency, cast(extract(epoch from booked) * 1000000 as bigint) as applied_at_us,
        null as event_id, null as corrects_effect_id
    from bookings
    where booked >= to_timestamp(:from_us / 1000000.0) and booked < to_timestamp(:until_us / 1000000.0)
";
const STATES: &str = "
    select 'stripe' as provider, '' as account, 'live' as mode, ext as object_id, 'paid' as status,
        cents as refunded_minor, cast(extract(epoch from booked) * 1000000 as bigint) as updated_at_us
    from bookings where booked >= to_timestamp(:from_us / 1000000.0) and booked < to_timestamp(:until_us / 1000000.0)
";
const INBOX: &str = "
    select 'stripe' as provider, '' as account, 'live' as mode, event_id, 'charge.succeeded' as event_type,
        at as received_at_us, state as status
    from deliveries where at >= :from_us and at < :until_us
";

struct Team {
    dir: tempfile::TempDir,
    store: Store,
    settings: Settings,
    place: Place,
}

impl Team {
    async fn new() -> Self {
        sqlx::any::install_default_drivers();
        let dir = tempfile::tempdir().unwrap();
        let queries = dir.path().join("queries/local");
        std::fs::create_dir_all(&queries).unwrap();
        let place = Place::new(Database::Postgres, dir.path());
        let body = "select body from deliveries where event_id = :event_id and :provider = 'stripe'";
        for (name, text) in
            [("effects.sql", EFFECTS), ("states.sql", STATES), ("inbox.sql", INBOX), ("inbox_body.sql", body)]
        {
            std::fs::write(queries.join(name), text).unwrap();
        }
        let text = "[[provider]]\nname = \"stripe\"\napi_key = { env = \"KEY\" }\n\
             [inbox]\nurl = { env = \"BOOKS\" }\n[local]\nurl = { env = \"BOOKS\" }\n";
        let environment = |name: &str| Some(if name == "BOOKS" { place.url() } else { "key".to_owned() });
        let settings = parse(text, &dir.path().join("recon.toml"), &environment).unwrap();
        let store = Store::open(&settings.store_url, Access::ReadWrite).await.unwrap();
        let team = Self { dir, store, settings, place };
        team.run_sql(TABLES).await;
        team
    }

    async fn run_sql(&self, sql: &'static str) {
        let pool = sqlx::PgPool::connect(&self.place.url()).await.unwrap();
        sqlx::raw_sql(sql).execute(&pool).await.unwrap();
        pool.close().await;
    }

    fn write_query(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join("queries/local").join(name), text).unwrap();
    }

    async fn effects(&self) -> anyhow::Result<Vec<LocalEffect>> {
        let dialect = Dialect::stripe(recon::record::iso_exponent);
        let books = LocalBooks::open(&self.settings, &self.store, dialect, WINDOW).await?.unwrap();
        let mut found = Vec::new();
        let mut keep = |fact| {
            if let Fact::LocalEffect(effect) = fact {
                found.push(effect);
            }
            Ok(())
        };
        at_once::effects(&books, WINDOW, &mut keep).await?;
        found.sort_by(|a, b| a.effect_id.cmp(&b.effect_id));
        Ok(found)
    }
}

#[tokio::test]
async fn values_of_postgres_are_read_exactly() {
    let team = Team::new().await;
    let effects = team.effects().await.unwrap();
    let seen: Vec<_> = effects
        .iter()
        .map(|effect| (&*effect.effect_id, effect.kind.as_str(), effect.amount_minor, &*effect.currency))
        .collect();
    assert_eq!(
        seen,
        [
            ("00010203-0405-0607-0809-0a0b0c0d0e0f", "credit", 1_234_560, "usd"),
            ("10010203-0405-0607-0809-0a0b0c0d0e0f", "refund", 1, "eur"),
        ]
    );
    assert!(effects.iter().all(|effect| effect.applied_at_us == AT_US && effect.event_id.is_empty()));
    let inbox = Inbox::open(&team.settings).await.unwrap().unwrap();
    let scope = Scope::new("stripe", "", "live");
    assert_eq!(inbox.body(&scope, "evt_1").await.unwrap().unwrap(), b"{\"a\": 1}");
    assert_eq!(inbox.body(&scope, "evt_2").await.unwrap(), None);
    let ids = BTreeSet::from(["evt_2".to_owned(), "evt_\0".to_owned()]);
    let mut count = 0;
    let mut keep = |_| {
        count += 1;
        Ok(())
    };
    at_once::events_of(&inbox, &scope, &ids, &mut keep).await.unwrap();
    assert_eq!(count, 1);
    team.write_query("inbox_body.sql", "select raw as body from deliveries where event_id = :event_id");
    let inbox = Inbox::open(&team.settings).await.unwrap().unwrap();
    assert_eq!(inbox.body(&scope, "evt_1").await.unwrap().unwrap(), [0, 255]);
}

#[tokio::test]
async fn what_is_no_whole_number_is_named_with_what_to_write() {
    let team = Team::new().await;
    for (from, to, message, hint) in [
        ("cast(extract(epoch from booked) * 1000000 as bigint)", "booked", "is a date", "extract(epoch"),
        ("value as amount", "rate as amount", "floating-point", "as text"),
        ("value as amount", "true as amount", "must be decimal text", ""),
        ("value as amount", "cast('NaN' as numeric) as amount", "cannot be taken", ""),
        ("from bookings", "from booking", "relation \"booking\" does not exist", "contract"),
        ("kind,", "'odd' as kind,", "no kind of effect", ""),
    ] {
        team.write_query("effects.sql", &EFFECTS.replacen(from, to, 1));
        let error = team.effects().await.unwrap_err();
        let error = error.downcast_ref::<Unusable>().unwrap_or_else(|| panic!("{error:#}"));
        assert!(error.message.contains(message), "{error}");
        assert!(error.hint.contains(hint), "{} {}", error.message, error.hint);
    }
}

#[tokio::test]
async fn a_statement_that_writes_writes_nothing() {
    let team = Team::new().await;
    let text = format!("with gone as (delete from bookings returning id) {EFFECTS}");
    team.write_query("effects.sql", &text);
    let error = team.effects().await.unwrap_err();
    assert!(error.downcast_ref::<Unusable>().unwrap().message.contains("data-modifying"), "{error:#}");
    team.run_sql(
        "create function wipe() returns bigint language sql as 'with gone as (delete from bookings returning 1)
         select count(*) from gone'",
    )
    .await;
    team.write_query("effects.sql", &EFFECTS.replace("null as event_id", "cast(wipe() as text) as event_id"));
    let error = team.effects().await.unwrap_err();
    assert!(error.downcast_ref::<Unusable>().unwrap().message.contains("read-only transaction"), "{error:#}");
    team.write_query("effects.sql", EFFECTS);
    assert_eq!(team.effects().await.unwrap().len(), 2);
}
