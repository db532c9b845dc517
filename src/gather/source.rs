//! Where a side is read: a read-only connection, the team's statement files, and rows in batches.

use super::columns::{Columns, Contract};
use super::statement::Statement;
use crate::config::{Side, Unusable};
use crate::record::{Fact, SECOND_US, Window};
use anyhow::{Context, Result};
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Executor, SqlSafeStr, Sqlite, Statement as _};
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
    pool: SqlitePool,
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
        let Some(path) = url.strip_prefix("sqlite:") else {
            return Err(Unusable::new(
                format!("{setting} is no sqlite: URL, and this release reads no other"),
                "write it as sqlite:books.db, or \"store\" for recon's own tables",
            )
            .into());
        };
        if !Path::new(path).is_file() {
            return Err(Unusable::new(
                format!("{setting} names {path}, and there is no such file"),
                "name the database that holds the books",
            )
            .into());
        }
        let options = SqliteConnectOptions::new().filename(path).read_only(true).busy_timeout(LOCK_WAIT);
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .connect_with(options)
            .await
            .with_context(|| format!("open {path} for reading"))?;
        Ok(Some(Self { pool, is_store: *side == Side::Store }))
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
        let prepared = (&self.pool).prepare(sql).await.map_err(|error| refused(&label, error))?;
        let columns = Columns::find(&label, contract, prepared.columns())?;
        Ok((statement, columns))
    }

    pub fn pool(&self) -> &SqlitePool {
        &self.pool
    }
}

/// SQLite's primary result codes for a database that is busy or locked: try again, nothing is wrong.
const PASSING_CODES: [&str; 2] = ["5", "6"];

fn refused(label: &str, error: sqlx::Error) -> anyhow::Error {
    match &error {
        sqlx::Error::Database(database)
            if database.code().is_none_or(|code| !PASSING_CODES.contains(&code.as_ref())) =>
        {
            Unusable::new(
                format!("{label}: the database refuses it: {}", database.message()),
                "correct the statement; its columns are the contract, its tables are yours",
            )
            .into()
        }
        _ => anyhow::Error::from(error).context(format!("prepare {label}")),
    }
}

/// A query with the window bound where the statement wants it.
pub(super) fn windowed<'q>(
    sql: String,
    statement: &Statement,
    window: Window,
) -> sqlx::query::Query<'q, Sqlite, SqliteArguments> {
    let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
    for bind in &statement.binds {
        query = query.bind(if *bind == "from_us" { window.from_us } else { window.until_us });
    }
    query
}
