//! Books and an inbox that a team keeps in a database of its own, on each of the three that are read.

use crate::mariadb::{PASSWORD, Server};
use crate::postgres::Place;
use recon::config::{Settings, Unusable, parse};
use recon::gather::{Dialect, Inbox, LocalBooks};
use recon::record::{Fact, InboxEvent, LocalEffect, LocalState, Scope, Window};
use recon::store::{Access, Database, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which database the team has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
    MariaDb,
}

impl Kind {
    /// The one of three texts that is this database's.
    pub fn pick<'a>(self, sqlite: &'a str, postgres: &'a str, mariadb: &'a str) -> &'a str {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
            Self::MariaDb => mariadb,
        }
    }

    /// Bytes as a literal.
    pub fn bytes(self, hex: &str) -> String {
        if self == Self::Postgres { format!("'\\x{hex}'") } else { format!("x'{hex}'") }
    }
}

/// An empty database of a team.
pub enum Books {
    File(PathBuf),
    Cluster(Place),
    Server(Arc<Server>, String),
}

impl Books {
    pub fn new(kind: Kind, folder: &Path) -> Self {
        match kind {
            Kind::Sqlite => Self::File(folder.join("books.db")),
            Kind::Postgres => Self::Cluster(Place::new(Database::Postgres, folder)),
            Kind::MariaDb => Self::on(Server::shared()),
        }
    }

    pub fn on(server: Arc<Server>) -> Self {
        let database = server.database();
        Self::Server(server, database)
    }

    /// Where it is read.
    pub fn url(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite:{}", path.display()),
            Self::Cluster(place) => place.url(),
            Self::Server(server, database) => server.url(database),
        }
    }

    /// Its owner's way in, which outlives nothing of it.
    pub fn hand(&self) -> Hand {
        match self {
            Self::File(path) => Hand::File(path.clone()),
            Self::Cluster(place) => Hand::Cluster(place.url()),
            Self::Server(server, database) => Hand::Server(Arc::clone(server), database.clone()),
        }
    }

    /// Statements of its owner.
    pub async fn run_sql(&self, sql: &str) {
        self.hand().run_sql(sql).await;
    }
}

/// The owner of such a database.
#[derive(Clone)]
pub enum Hand {
    File(PathBuf),
    Cluster(String),
    Server(Arc<Server>, String),
}

impl Hand {
    /// Where its owner reads and writes it.
    pub fn url(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite:{}", path.display()),
            Self::Cluster(url) => url.clone(),
            Self::Server(server, database) => server.owner_url(database),
        }
    }

    async fn file(path: &Path) -> sqlx::SqlitePool {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
        sqlx::SqlitePool::connect_with(options).await.unwrap()
    }

    /// Statements.
    pub async fn run_sql(&self, sql: &str) {
        let text = sql;
        let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(text.to_owned()));
        match self {
            Self::File(path) => {
                let pool = Self::file(path).await;
                sql.execute(&pool).await.unwrap();
                pool.close().await;
            }
            Self::Cluster(url) => {
                let pool = sqlx::PgPool::connect(url).await.unwrap();
                sql.execute(&pool).await.unwrap();
                pool.close().await;
            }
            Self::Server(server, database) => {
                server.run_sql(database, text);
            }
        }
    }

    /// The rows of a statement with one column of text.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        use sqlx::Row;
        let text = sqlx::AssertSqlSafe(sql.to_owned());
        match self {
            Self::File(path) => {
                let pool = Self::file(path).await;
                let rows = sqlx::query(text).fetch_all(&pool).await.unwrap();
                pool.close().await;
                rows.iter().map(|row| row.get(0)).collect()
            }
            Self::Cluster(url) => {
                let pool = sqlx::PgPool::connect(url).await.unwrap();
                let rows = sqlx::query(text).fetch_all(&pool).await.unwrap();
                pool.close().await;
                rows.iter().map(|row| row.get(0)).collect()
            }
            Self::Server(server, database) => {
                let text = server.run_sql(database, sql);
                text.lines().map(str::to_owned).collect()
            }
        }
    }

    /// Every row of a table with all its values, in an order of its own.
    pub async fn dump(&self, table: &str) -> String {
        let mut rows = match self {
            Self::File(_) => {
                let columns =
                    format!("select 'quote(' || name || ')' from pragma_table_info('{table}') order by cid");
                let columns = self.texts(&columns).await.join(" || '|' || ");
                self.texts(&format!("select {columns} from {table}")).await
            }
            Self::Cluster(_) => self.texts(&format!("select t::text from {table} t")).await,
            Self::Server(..) => self.texts(&format!("select * from {table}")).await,
        };
        rows.sort();
        format!("{table}:\n{}\n", rows.join("\n"))
    }
}

pub const AT_US: i64 = 1_769_913_000_000_000;
pub const WINDOW: Window = Window { from_us: AT_US - 1_000, until_us: AT_US + 1_000 };

pub const EFFECTS: &str = "
    select currency, 'a column more' as extra, booked as also_extra, id as effect_id, 'stripe' as provider,
        '' as account, 'live' as mode, ext as object_id, word as kind, amount_text as amount,
        1769913000000000 + id as applied_at_us, event as event_id, undoes as corrects_effect_id
    from payments where 1769913000000000 + id >= :from_us and 1769913000000000 + id < :until_us -- by id
";
const STATES: &str = "
    select 'stripe' as provider, '' as account, 'live' as mode, ext as object_id, word as status,
        cents as refunded_minor, 1769913000000000 + id as updated_at_us
    from payments where 1769913000000000 + id >= :from_us and 1769913000000000 + id < :until_us;
";
pub const INBOX: &str = "
    select 'stripe' as provider, '' as account, 'live' as mode, event_id, type as event_type,
        at as received_at_us, state as status
    from deliveries where at >= :from_us and at < :until_us
";
const BODY: &str = "select body from deliveries where event_id = :event_id and :provider = 'stripe'";

/// A team's database, its statements, and recon's store.
pub struct Team {
    pub dir: tempfile::TempDir,
    pub store: Store,
    pub settings: Settings,
    pub books: Books,
}

impl Team {
    pub async fn new(kind: Kind, rows: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let books = Books::new(kind, dir.path());
        Self::with(kind, books, dir, rows).await
    }

    pub async fn with(kind: Kind, books: Books, dir: tempfile::TempDir, rows: &str) -> Self {
        let queries = dir.path().join("queries/local");
        std::fs::create_dir_all(&queries).unwrap();
        for (name, text) in
            [("effects.sql", EFFECTS), ("states.sql", STATES), ("inbox.sql", INBOX), ("inbox_body.sql", BODY)]
        {
            std::fs::write(queries.join(name), text).unwrap();
        }
        let settings = settings(dir.path(), &books.url(), "");
        let store = Store::open(&settings.store_url, Access::ReadWrite).await.unwrap();
        let (instant, bytes) =
            (kind.pick("datetime", "timestamp", "datetime(6)"), kind.pick("blob", "bytea", "blob"));
        // MariaDB compares these ids without case and blanks at the end.
        let text = kind.pick("text", "text", "varchar(190)");
        let tables = format!(
            "create table payments (id integer primary key, ext {text}, word {text}, value decimal(12, 2),
                 amount_text text, cents bigint, currency text, booked {instant}, event {text}, undoes integer);
             create table deliveries (event_id {text}, type text, at bigint, state text, body {bytes});"
        );
        books.run_sql(&tables).await;
        if !rows.is_empty() {
            books.run_sql(rows).await;
        }
        Self { dir, store, settings, books }
    }

    /// The same team with a line more under `[limits]`.
    pub fn limited(&mut self, line: &str) {
        self.settings = settings(self.dir.path(), &self.books.url(), line);
    }

    pub async fn run_sql(&self, sql: &str) {
        self.books.run_sql(sql).await;
    }

    pub fn write_query(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join("queries/local").join(name), text).unwrap();
    }

    pub async fn alias(&self, alias: &str, root: &str, is_part: i64) {
        sqlx::query("insert into alias values ('stripe', '', 'live', $1, $2, $3)")
            .bind(alias.to_owned())
            .bind(root.to_owned())
            .bind(is_part)
            .execute(self.store.pool())
            .await
            .unwrap();
    }

    pub async fn local(&self) -> anyhow::Result<LocalBooks> {
        let dialect = Dialect::stripe(recon::record::iso_exponent);
        Ok(LocalBooks::open(&self.settings, &self.store, dialect, WINDOW).await?.unwrap())
    }

    /// Effects in the window, by id.
    pub async fn effects(&self) -> anyhow::Result<Vec<LocalEffect>> {
        let books = self.local().await?;
        let mut found = Vec::new();
        at_once::effects(&books, WINDOW, &mut |fact| keep_effect(&mut found, fact)).await?;
        found.sort_by_key(|effect| effect.applied_at_us);
        Ok(found)
    }

    pub async fn states(&self) -> anyhow::Result<Vec<LocalState>> {
        let books = self.local().await?;
        let mut found = Vec::new();
        let mut keep = |fact| {
            if let Fact::LocalState(state) = fact {
                found.push(state);
            }
            Ok(())
        };
        at_once::states(&books, WINDOW, &mut keep).await?;
        found.sort_by_key(|state| state.updated_at_us);
        Ok(found)
    }

    pub async fn inbox(&self) -> anyhow::Result<Vec<InboxEvent>> {
        let inbox = Inbox::open(&self.settings).await?.unwrap();
        let mut found = Vec::new();
        at_once::events(&inbox, WINDOW, &mut |fact| keep_event(&mut found, fact)).await?;
        found.sort_by(|a, b| a.event_id.cmp(&b.event_id));
        Ok(found)
    }
}

fn settings(dir: &Path, url: &str, limit: &str) -> Settings {
    let text = format!(
        "[[provider]]\nname = \"stripe\"\napi_key = {{ env = \"KEY\" }}\n[inbox]\nurl = {{ env = \"BOOKS\" }}\n\
         [local]\nurl = {{ env = \"BOOKS\" }}\n[local.status_map]\ndone = \"paid\"\n[limits]\n{limit}\n"
    );
    let environment = |name: &str| Some(if name == "BOOKS" { url.to_owned() } else { "key".to_owned() });
    parse(&text, &dir.join("recon.toml"), &environment).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a sink")]
pub fn keep_effect(found: &mut Vec<LocalEffect>, fact: Fact) -> anyhow::Result<()> {
    if let Fact::LocalEffect(effect) = fact {
        found.push(effect);
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a sink")]
pub fn keep_event(found: &mut Vec<InboxEvent>, fact: Fact) -> anyhow::Result<()> {
    if let Fact::InboxEvent(event) = fact {
        found.push(event);
    }
    Ok(())
}

pub fn scope() -> Scope {
    Scope::new("stripe", "", "live")
}

/// The settings or statements cannot be used: exit 78. No error shows the password.
#[track_caller]
pub fn unusable<T: std::fmt::Debug>(result: anyhow::Result<T>) -> Unusable {
    let error = result.unwrap_err();
    assert!(!format!("{error:?}").contains(PASSWORD), "{error:?}");
    error.downcast::<Unusable>().unwrap_or_else(|error| panic!("{error:?}"))
}

/// The database is not to be had: exit 2, with a hint. No error shows the password.
#[track_caller]
pub fn trouble<T: std::fmt::Debug>(result: anyhow::Result<T>) -> String {
    let error = result.unwrap_err();
    assert!(!format!("{error:?}").contains(PASSWORD), "{error:?}");
    assert!(error.downcast_ref::<Unusable>().is_none(), "{error:?}");
    assert!(recon::gather::hint_of(&error).is_some(), "{error:?}");
    format!("{error:#}")
}

/// Runs tests that take a [`Kind`] on each of the three.
macro_rules! on_each {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() { super::$name(crate::books::Kind::Sqlite).await; })*
        }
        mod postgres {
            $(#[tokio::test] async fn $name() { super::$name(crate::books::Kind::Postgres).await; })*
        }
        mod mariadb {
            $(#[tokio::test] async fn $name() { super::$name(crate::books::Kind::MariaDb).await; })*
        }
    };
}
pub(crate) use on_each;

/// One question, at a moment of its own.
pub mod at_once {
    use recon::gather::{FactSink, Inbox, LocalBooks, Moment};
    use recon::record::{Scope, Window};
    use std::collections::BTreeSet;

    pub async fn effects(books: &LocalBooks, window: Window, sink: FactSink<'_>) -> anyhow::Result<u64> {
        let mut moment = Moment::begin(Some(books), None).await?;
        let count = moment.effects(window, sink).await?;
        moment.end().await?;
        Ok(count)
    }

    pub async fn states(books: &LocalBooks, window: Window, sink: FactSink<'_>) -> anyhow::Result<u64> {
        let mut moment = Moment::begin(Some(books), None).await?;
        let count = moment.states(window, sink).await?;
        moment.end().await?;
        Ok(count)
    }

    pub async fn events(inbox: &Inbox, window: Window, sink: FactSink<'_>) -> anyhow::Result<u64> {
        let mut moment = Moment::begin(None, Some(inbox)).await?;
        let count = moment.events(window, sink).await?;
        moment.end().await?;
        Ok(count)
    }

    pub async fn events_of(
        inbox: &Inbox,
        scope: &Scope,
        ids: &BTreeSet<String>,
        sink: FactSink<'_>,
    ) -> anyhow::Result<u64> {
        let mut moment = Moment::begin(None, Some(inbox)).await?;
        let count = moment.events_of(scope, ids, sink).await?;
        moment.end().await?;
        Ok(count)
    }
}
