//! A store on PostgreSQL: the same statements and tables as on SQLite, roles, locks and passwords.

use crate::apply::books::{finding, run, scope};
use crate::postgres::{Cluster, Place};
use recon::findings::{Action, Kind};
use recon::record::{EffectKind, Window};
use recon::store::batch::repeat_values;
use recon::store::history::{self, Judged};
use recon::store::{Access, Database, Store, is_busy, runs};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row, SqlSafeStr};
use std::path::{Path, PathBuf};
use std::task::Poll;

pub const BOTH: [Database; 2] = [Database::Sqlite, Database::Postgres];

/// A store of its own and where it lies.
pub struct Held {
    pub store: Store,
    pub place: Place,
    _folder: tempfile::TempDir,
}

impl Held {
    pub async fn new(database: Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        let store = Store::open(&place.url(), Access::ReadWrite).await.unwrap();
        Self { store, place, _folder: folder }
    }

    async fn execute(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(self.store.pool()).await.unwrap();
    }

    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let rows = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(self.store.pool()).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

fn statements(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries").join(folder);
    // `demo/recovery/` stages kills with triggers that SQLite alone has.
    let mut found: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    assert!(found.len() >= 3, "{}", folder.display());
    found
}

#[tokio::test]
async fn every_statement_is_prepared_on_both() {
    for database in BOTH {
        let held = Held::new(database).await;
        for path in statements("store").into_iter().chain(statements("demo")) {
            let text: &'static str = std::fs::read_to_string(&path).unwrap().leak();
            let what = format!("{database:?}: {}", path.display());
            let mut connection = held.store.pool().acquire().await.unwrap();
            let prepared = connection.prepare(text.into_sql_str()).await;
            prepared.unwrap_or_else(|error| panic!("{what}: {error}"));
            if text.contains("values ($") {
                let many = repeat_values(database, text, 3).into_sql_str();
                let prepared = connection.prepare(many).await;
                prepared.unwrap_or_else(|error| panic!("{what}, three rows: {error}"));
            }
        }
    }
}

/// Table, column, type in one spelling, whether it may be null, and its place in the primary key.
const SQLITE_COLUMNS: &str = "select t.name || ' ' || c.name || ' ' || lower(c.type) || ' ' || c.\"notnull\" || ' ' || c.pk \
     from sqlite_master t join pragma_table_info(t.name) c where t.type = 'table' and t.name not like '\\_sqlx%' escape '\\'";
const POSTGRES_COLUMNS: &str = "select c.table_name || ' ' || c.column_name || ' ' \
       || case c.data_type when 'bytea' then 'blob' else c.data_type end || ' ' \
       || case c.is_nullable when 'NO' then 1 else 0 end || ' ' || coalesce(k.ordinal_position, 0) \
     from information_schema.columns c \
     left join information_schema.table_constraints p \
       on p.table_schema = c.table_schema and p.table_name = c.table_name and p.constraint_type = 'PRIMARY KEY' \
     left join information_schema.key_column_usage k \
       on k.constraint_name = p.constraint_name and k.table_name = c.table_name and k.column_name = c.column_name \
     where c.table_schema = current_schema() and c.table_name not like '\\_sqlx%'";

#[tokio::test]
async fn both_have_the_same_tables_and_postgres_compares_bytes() {
    let mut columns = Vec::new();
    for (database, sql) in [(Database::Sqlite, SQLITE_COLUMNS), (Database::Postgres, POSTGRES_COLUMNS)] {
        let mut found = Held::new(database).await.texts(sql).await;
        found.sort();
        columns.push(found);
    }
    assert!(columns[0].len() > 100, "{columns:?}");
    assert_eq!(columns[0], columns[1]);
    let held = Held::new(Database::Postgres).await;
    let sql = "select table_name || '.' || column_name from information_schema.columns \
         where table_schema = current_schema() and data_type = 'text' and table_name <> '_sqlx_migrations' \
         and coalesce(collation_name, '') <> 'C'";
    assert_eq!(held.texts(sql).await, Vec::<String>::new(), "texts in another order than bytes");
    let unique = "select cast(count(*) as text) from pg_index where indisunique and indrelid in \
         (select oid from pg_class where relnamespace = to_regnamespace(current_schema()) and relname not like '\\_sqlx%')";
    let sqlite_unique = "select cast(count(*) as text) from sqlite_master t join pragma_index_list(t.name) i \
         where t.type = 'table' and i.\"unique\" = 1 and t.name not like '\\_sqlx%' escape '\\'";
    let sqlite = Held::new(Database::Sqlite).await;
    assert_eq!(held.texts(unique).await, sqlite.texts(sqlite_unique).await);
}

#[tokio::test]
async fn pages_come_in_byte_order_on_both() {
    use recon::store::{PageRecord, records_page};
    let ids = ["b", "B", "a", "_", "A", "é", "ch_1", "ch_10", "chA"];
    for database in BOTH {
        let held = Held::new(database).await;
        let records: Vec<PageRecord> = ids
            .iter()
            .map(|id| PageRecord {
                record_id: (*id).to_owned(),
                created_us: 5,
                asked_at_us: 7,
                body: b"\0x".to_vec(),
            })
            .collect();
        held.store.write_records(&scope(), "charges", &records).await.unwrap();
        let window = Window { from_us: 0, until_us: 10 };
        let page = records_page(&held.store, &scope(), "charges", window, None).await.unwrap();
        let found: Vec<&str> = page.iter().map(|record| &*record.record_id).collect();
        let mut expected = ids.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{database:?}");
        assert_eq!(page[0].body, b"\0x");
        let rest = records_page(&held.store, &scope(), "charges", window, Some(&page[3])).await.unwrap();
        assert_eq!(rest.len(), ids.len() - 4, "{database:?}");
    }
}

/// A role, and the store's address for it.
async fn role(held: &Held, name: &str, rights: &str) -> String {
    held.execute(&format!("create role {name} login; grant usage on schema public to {name}; {rights}"))
        .await;
    held.place.url().replace("recon@", &format!("{name}@"))
}

#[tokio::test]
async fn reading_needs_a_reading_role_and_writing_no_right_to_create() {
    let held = Held::new(Database::Postgres).await;
    runs::start(&held.store, &run("run_1", 1)).await.unwrap();
    let url =
        role(&held, "reader_of_it", "grant select on all tables in schema public to reader_of_it").await;
    let reader = Store::open(&url, Access::ReadOnly).await.unwrap();
    assert_eq!(runs::recent(reader.pool(), 5).await.unwrap().len(), 1);
    assert!(runs::start(&reader, &run("run_2", 2)).await.is_err());
    reader.close().await;
    let rights = "grant select, insert, update, delete on all tables in schema public to writer_of_it";
    let url = role(&held, "writer_of_it", rights).await;
    let writer = Store::open(&url, Access::ReadWrite).await.unwrap();
    runs::start(&writer, &run("run_2", 2)).await.unwrap();
    writer.close().await;
    held.execute("drop owned by reader_of_it; drop role reader_of_it; drop owned by writer_of_it; drop role writer_of_it")
        .await;
}

#[tokio::test]
async fn a_store_that_is_not_there_is_not_made_by_reading() {
    let place = Place::new(Database::Postgres, Path::new("/"));
    let error = Store::open(&place.url(), Access::ReadOnly).await.unwrap_err();
    assert!(format!("{error:#}").contains("there is no store at postgres://localhost/"), "{error:#}");
    Store::open(&place.url(), Access::ReadWrite).await.unwrap().close().await;
    Store::open(&place.url(), Access::ReadWrite).await.unwrap().close().await;
    Store::open(&place.url(), Access::ReadOnly).await.unwrap().close().await;
}

#[tokio::test]
async fn c82_no_error_of_opening_shows_the_password() {
    let folder = Cluster::shared().folder().display().to_string();
    for url in [
        format!("postgres://recon:hunter2@localhost/not_there?host={folder}"),
        "postgres://recon:hunter2@127.0.0.1:1/books".to_owned(),
        "postgres://recon:hunter2@localhost:port/books".to_owned(),
        "postgres://recon:hunter2@localhost/books?sslmode=odd".to_owned(),
        format!("postgres://nobody@localhost/postgres?host={folder}&password=hunter2"),
    ] {
        for access in [Access::ReadOnly, Access::ReadWrite] {
            let error = format!("{:?}", Store::open(&url, access).await.unwrap_err());
            assert!(!error.contains("hunter2") && error.contains("open the store"), "{error}");
        }
    }
}

/// Whether a future is still not ready after the runtime has had every chance to go on with it.
async fn is_held_up<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
    for _ in 0..50 {
        let polled = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending()));
        if !polled.await {
            return false;
        }
        tokio::task::spawn_blocking(|| ()).await.unwrap();
    }
    true
}

#[tokio::test]
async fn the_write_lock_holds_up_who_takes_it_and_nobody_else() {
    let held = Held::new(Database::Postgres).await;
    // Whatever the database's default is, what was committed before the lock was had is seen.
    let name = held.texts("select cast(current_database() as text)").await.remove(0);
    held.execute(&format!("alter database {name} set default_transaction_isolation = 'serializable'")).await;
    let (first, second) = (
        Store::open(&held.place.url(), Access::ReadWrite).await.unwrap(),
        Store::open(&held.place.url(), Access::ReadWrite).await.unwrap(),
    );
    let mut writing = first.begin_write().await.unwrap();
    let mut waiting = Box::pin(second.begin_write());
    assert!(is_held_up(waiting.as_mut()).await);
    let mut plain = second.begin().await.unwrap();
    let insert = "insert into lease (name, holder, expires_at_us) values ($1, 'x', 1)";
    sqlx::query(insert).bind("plain").execute(&mut *plain).await.unwrap();
    plain.commit().await.unwrap();
    sqlx::query(insert).bind("locked").execute(&mut *writing).await.unwrap();
    writing.commit().await.unwrap();
    let mut then = waiting.await.unwrap();
    let row = sqlx::query("select count(*) from lease").fetch_one(&mut *then).await.unwrap();
    assert_eq!(row.get::<i64, _>(0), 2);
}

/// Two plain writers in opposite orders: one of them is told to begin again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c73_a_deadlock_is_named_as_something_to_try_again() {
    let held = Held::new(Database::Postgres).await;
    let insert = "insert into lease (name, holder, expires_at_us) values ($1, 'x', 1) on conflict do nothing returning name";
    let (mut one, mut other) = (held.store.begin().await.unwrap(), held.store.begin().await.unwrap());
    sqlx::query(insert).bind("a").fetch_optional(&mut *one).await.unwrap();
    sqlx::query(insert).bind("b").fetch_optional(&mut *other).await.unwrap();
    let crossing = tokio::spawn(async move {
        sqlx::query(insert).bind("b").fetch_optional(&mut *one).await.map_err(anyhow::Error::from).map(drop)
    });
    let back = sqlx::query(insert).bind("a").fetch_optional(&mut *other).await.map_err(anyhow::Error::from);
    drop(other);
    let errors: Vec<anyhow::Error> =
        [back.map(drop), crossing.await.unwrap()].into_iter().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(is_busy(&errors[0]), "{:?}", errors[0]);
}

/// PostgreSQL has no NUL in texts, and an id of somebody's books may have one.
#[tokio::test]
async fn an_id_with_a_nul_ends_no_run_on_either() {
    let mut seen = Vec::new();
    for database in BOTH {
        let held = Held::new(database).await;
        let odd = finding(Kind::OrphanEffect, Action::Review, EffectKind::Credit, "ch_\0odd");
        let judged = Judged { scopes: vec![scope()], window: Window { from_us: 0, until_us: 1 } };
        let mut tx = held.store.begin_write().await.unwrap();
        let found = history::record(&mut tx, "run_1", 5, std::slice::from_ref(&odd), Some(&judged)).await;
        assert_eq!(found.unwrap().len(), 1);
        tx.commit().await.unwrap();
        seen.push(held.texts("select finding_id || object_id from finding").await);
        let ids = std::collections::BTreeSet::from(["ch_\0odd".to_owned(), "ch_1".to_owned()]);
        assert!(recon::store::known_as(&held.store, &scope(), &ids).await.unwrap().len() == 2);
        assert!(recon::store::resolve(&held.store, &scope(), &ids, |_| false).await.unwrap().is_empty());
        assert!(recon::store::records_by_id(&held.store, &scope(), &ids, None).await.unwrap().is_empty());
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn a_database_of_another_encoding_is_refused() {
    sqlx::any::install_default_drivers();
    let cluster = Cluster::shared();
    let mut server = AnyConnection::connect(&cluster.url("postgres")).await.unwrap();
    server.execute("create database latin encoding 'LATIN1' locale 'C' template template0").await.unwrap();
    let error = Store::open(&cluster.url("latin"), Access::ReadWrite).await.unwrap_err();
    assert!(format!("{error:#}").contains("LATIN1, and must be UTF8"), "{error:#}");
    server.execute("drop database latin with (force)").await.unwrap();
}

/// A unique index over some rows only, or over a column that may be null, lets the same key in twice, and refuses
/// `on conflict` that names its columns.
#[tokio::test]
async fn c68_every_unique_key_of_the_store_is_whole_and_never_null() {
    const SQLITE: &str = "select t.name || '.' || i.name || '.' || c.name from sqlite_master t \
         join pragma_index_list(t.name) i join pragma_index_info(i.name) c \
         join pragma_table_info(t.name) k on k.name = c.name \
         where t.type = 'table' and i.\"unique\" = 1 and t.name not like '\\_sqlx%' escape '\\' \
         and (i.partial = 1 or (k.\"notnull\" = 0 and k.pk = 0))";
    const POSTGRES: &str = "select t.relname || '.' || a.attname from pg_index i \
         join pg_class t on t.oid = i.indrelid join pg_attribute a on a.attrelid = t.oid and a.attnum = any (i.indkey) \
         where i.indisunique and t.relnamespace = to_regnamespace(current_schema()) and t.relname not like '\\_sqlx%' \
         and (i.indpred is not null or not a.attnotnull)";
    for (database, sql) in [(Database::Sqlite, SQLITE), (Database::Postgres, POSTGRES)] {
        let held = Held::new(database).await;
        assert_eq!(held.texts(sql).await, Vec::<String>::new(), "{database:?}");
        // The question is one that a bad index answers.
        held.execute("create table bad (one text, two text not null)").await;
        held.execute("create unique index partial on bad (two) where two <> ''").await;
        held.execute("create unique index nullable on bad (one)").await;
        assert_eq!(held.texts(sql).await.len(), 2, "{database:?}");
    }
}
