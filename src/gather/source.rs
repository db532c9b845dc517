//! Where a side is read: a read-only connection, the team's statement files, and rows in batches.

use super::columns::{Columns, Contract};
use super::rows::{Bind, Pool, Reader, postgres_types};
use super::statement::Statement;
use crate::config::{Side, Unusable};
use crate::record::{Fact, SECOND_US, Window};
use crate::store::{Database, shown_url};
use anyhow::{Context, Result};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, SqlSafeStr, Statement as _};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// Takes facts as they are read; an error of its stops the reading.
pub type FactSink<'a> = &'a mut (dyn FnMut(Fact) -> Result<()> + Send);

/// The statements that read recon's own tables: what `recon init` writes, and what stands in for a file
/// that is not there while a side is `store`.
pub const DEFAULT_QUERIES: [(&str, &str); 4] = [
    ("effects.sql", include_str!("../../queries/local/effects.sql")),
    ("states.sql", include_str!("../../queries/local/states.sql")),
    ("inbox.sql", include_str!("../../queries/local/inbox.sql")),
    ("inbox_body.sql", include_str!("../../queries/local/inbox_body.sql")),
];

/// Rows whose ids are resolved together.
pub(super) const BATCH_ROWS: usize = 500;
/// Ids in one filter.
pub(super) const FILTER_IDS: usize = 200;

/// All time, as a window that date functions of databases can still compute with (year 9999).
pub(super) const ALL_TIME: Window = Window { from_us: 0, until_us: 253_402_300_799 * SECOND_US };

const CONNECTIONS_MAX: u32 = 4;
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// An open side.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pool: Pool,
    is_store: bool,
}

impl Source {
    /// Opens a side for reading; `None` where the team has none.
    pub async fn open(side: &Side, store_url: &str, setting: &str) -> Result<Option<Self>> {
        let url = match side {
            Side::Absent => return Ok(None),
            Side::Store => store_url,
            Side::Database(url) => url.reveal(),
        };
        let pool = match Database::of_url(url) {
            Some(Database::Sqlite) => Self::open_sqlite(url, setting).await?,
            Some(Database::Postgres) => Self::open_postgres(url).await?,
            None => {
                return Err(Unusable::new(
                    format!("{setting} is no sqlite: or postgres: URL, and this release reads no other"),
                    "write it as sqlite:books.db or postgres://host/database, or \"store\" for recon's own tables",
                )
                .into());
            }
        };
        Ok(Some(Self { pool, is_store: *side == Side::Store }))
    }

    async fn open_sqlite(url: &str, setting: &str) -> Result<Pool> {
        let path = shown_url(url);
        if !Path::new(&path).is_file() {
            return Err(Unusable::new(
                format!("{setting} names {path}, and there is no such file"),
                "name the database that holds the books",
            )
            .into());
        }
        let options = SqliteConnectOptions::new().filename(&path).read_only(true).busy_timeout(LOCK_WAIT);
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS_MAX).connect_with(options).await;
        Ok(Pool::Sqlite(pool.with_context(|| format!("open {path} for reading"))?))
    }

    async fn open_postgres(url: &str) -> Result<Pool> {
        let context = || format!("open {} for reading", shown_url(url));
        let options: PgConnectOptions = url.parse().with_context(context)?;
        // A pool tries a failing connection again until its time is over; one of our own says why at once.
        let first = options.connect().await.with_context(context)?;
        first.close().await.with_context(context)?;
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS_MAX).connect_with(options).await;
        Ok(Pool::Postgres(pool.with_context(context)?))
    }

    /// Reads `file` of the folder and checks it against the database: the statement works, and it gives
    /// the columns of the contract.
    pub async fn statement(
        &self,
        folder: &Path,
        file: &str,
        binds: &[&'static str],
        contract: &Contract,
    ) -> Result<(Statement, Columns)> {
        let path = folder.join(file);
        let (label, text) = match std::fs::read_to_string(&path) {
            Ok(text) => (path.display().to_string(), text),
            Err(error) if error.kind() == ErrorKind::NotFound && self.is_store => {
                let text = DEFAULT_QUERIES.iter().find(|(name, _)| *name == file).map(|(_, text)| *text);
                (file.to_owned(), text.unwrap_or_default().to_owned())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Unusable::new(
                    format!("{} is missing", path.display()),
                    "`recon init` writes one to begin with; rewrite it for your tables",
                )
                .into());
            }
            Err(error) => {
                return Err(Unusable::new(format!("cannot read {}: {error}", path.display()), "").into());
            }
        };
        let statement = Statement::parse(&label, &text, binds)?;
        let sql = AssertSqlSafe(statement.sql().to_owned()).into_sql_str();
        let columns = match &self.pool {
            Pool::Sqlite(pool) => {
                let prepared = pool.prepare(sql).await.map_err(|error| refused(&label, error))?;
                Columns::find(&label, contract, prepared.columns())?
            }
            Pool::Postgres(pool) => {
                let prepared = pool.prepare_with(sql, &postgres_types(&statement.binds)).await;
                let prepared = prepared.map_err(|error| refused(&label, error))?;
                Columns::find(&label, contract, prepared.columns())?
            }
        };
        Ok((statement, columns))
    }

    /// A connection that can only read.
    pub async fn reader(&self) -> Result<Reader> {
        self.pool.reader().await
    }

    /// Whether this database can hold such a text: none of PostgreSQL's has a NUL, and binding one there is
    /// an error.
    pub fn can_hold(&self, text: &str) -> bool {
        matches!(self.pool, Pool::Sqlite(_)) || !text.contains('\0')
    }
}

/// SQLite's primary result codes for a database that is busy or locked: try again, nothing is wrong.
const PASSING_CODES: [&str; 2] = ["5", "6"];
/// PostgreSQL's classes of errors that a statement has no part in: connection, conflict, resources, operator.
const PASSING_CLASSES: [&str; 4] = ["08", "40", "53", "57"];

fn is_passing(code: &str) -> bool {
    PASSING_CODES.contains(&code) || code.len() == 5 && PASSING_CLASSES.contains(&&code[..2])
}

fn refused(label: &str, error: sqlx::Error) -> anyhow::Error {
    match &error {
        sqlx::Error::Database(database) if database.code().is_none_or(|code| !is_passing(&code)) => {
            Unusable::new(
                format!("{label}: the database refuses it: {}", database.message()),
                "correct the statement; its columns are the contract, its tables are yours",
            )
            .into()
        }
        _ => anyhow::Error::from(error).context(format!("prepare {label}")),
    }
}

/// The window where the statement wants it, then ids.
pub(super) fn window_binds(statement: &Statement, window: Window, ids: &[&str]) -> Vec<Bind> {
    let instant = |bind: &&str| if *bind == "from_us" { window.from_us } else { window.until_us };
    let instants = statement.binds.iter().map(instant).map(Bind::Integer);
    instants.chain(ids.iter().map(|id| Bind::Text((*id).to_owned()))).collect()
}
