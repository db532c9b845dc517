//! The connection that reads a side: one transaction that may only read and sees one moment, and the rows of a
//! statement as they arrive. Corrections are written on one of its kind that may write.
//!
//! The one thing to get right: nothing is left behind on a connection that a pooler may hand to somebody else. What
//! PostgreSQL is told holds for one transaction, and no statement there has a name.

use super::rows::TeamRow;
use super::sqlite::{self, Session, SqliteRow};
use super::trouble::{Told, Trouble, is_in_the_way};
use anyhow::{Context as _, Result};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use sqlx::mysql::{MySqlArguments, MySqlPool};
use sqlx::postgres::{PgArguments, PgConnection, PgPool, PgRow};
use sqlx::sqlite::{SqliteArguments, SqlitePool};
use sqlx::{
    Arguments, AssertSqlSafe, Column, Executor, MySql, Postgres, Row, SqlSafeStr, Sqlite, Statement as _,
    Transaction, Type,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Connections of a side.
#[derive(Clone)]
pub(super) enum Pool {
    Sqlite {
        /// For what a statement gives, without its rows, and for what is written.
        pool: SqlitePool,
        path: String,
    },
    Postgres {
        pool: PgPool,
        /// Each describes a statement of the team, see [`warm_up`].
        statements: Arc<Mutex<Vec<Described>>>,
    },
    MySql(MySqlPool),
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pool")
    }
}

/// Something bound to a statement. It has no `Debug`: it may be a body.
#[derive(Clone)]
pub(super) enum Bind {
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
    NoInteger,
    NoText,
    NoBytes,
}

/// A statement that gives one row of nulls with the columns of another one, and what is bound to it.
pub(super) type Described = (String, Vec<Bind>);

/// Reads statements at one moment.
pub(super) struct Reader {
    transaction: Open,
    told: Told,
}

pub(super) enum Open {
    /// A file that is only read.
    File(Session),
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
    MySql(Transaction<'static, MySql>),
}

/// SQLite sees one moment from the first read on.
const SQLITE_MOMENT: &str = "select count(*) from sqlite_master where 1 = 0";
const MYSQL_READ_ONLY: &str = "start transaction with consistent snapshot, read only";
/// How much longer than the database itself this side waits for the end of a statement.
const PATIENCE: Duration = Duration::from_secs(30);
/// PostgreSQL's `invalid_sql_statement_name`.
const NO_SUCH_STATEMENT: &str = "26000";

impl Pool {
    /// Begins to read: everything that the reader sees is of this moment.
    pub async fn reader(&self, told: &Told) -> Result<Reader> {
        let transaction = match self {
            Self::Sqlite { path, .. } => {
                Open::File(Session::begin(path).await.map_err(|error| told.unopened_by_sqlite(&error))?)
            }
            _ => self.begin(told.timeout).await.map_err(|error| told.unopened(&error))?,
        };
        Ok(Reader { transaction, told: told.clone() })
    }

    pub(super) async fn begin(&self, timeout: Duration) -> sqlx::Result<Open> {
        Ok(match self {
            Self::Sqlite { pool, .. } => {
                let mut transaction = pool.begin_with("begin deferred").await?;
                sqlx::query(SQLITE_MOMENT).fetch_all(&mut *transaction).await?;
                Open::Sqlite(transaction)
            }
            Self::Postgres { pool, .. } => {
                Open::Postgres(pool.begin_with(AssertSqlSafe(read_only(timeout))).await?)
            }
            Self::MySql(pool) => Open::MySql(pool.begin_with(MYSQL_READ_ONLY).await?),
        })
    }

    /// Begins to write. What others commit meanwhile is seen; two writers of one row wait for each other.
    pub async fn writer(&self, told: &Told) -> Result<Reader> {
        let transaction = self.begin_writing(told.timeout).await.map_err(|error| match error {
            // Others have it locked; it is there all the same.
            locked if is_in_the_way(&locked) => told.stopped(told.setting, &locked),
            error => told.unopened(&error),
        })?;
        Ok(Reader { transaction, told: told.clone() })
    }

    async fn begin_writing(&self, timeout: Duration) -> sqlx::Result<Open> {
        Ok(match self {
            Self::Sqlite { pool, .. } => Open::Sqlite(pool.begin_with("begin immediate").await?),
            Self::Postgres { pool, .. } => {
                let begin = format!(
                    "begin isolation level read committed read write; set local statement_timeout = {}",
                    timeout.as_millis()
                );
                Open::Postgres(pool.begin_with(AssertSqlSafe(begin)).await?)
            }
            Self::MySql(pool) => Open::MySql(pool.begin_with("start transaction read write").await?),
        })
    }

    /// Whether the database takes a statement that writes, without running it.
    pub async fn check_write(&self, label: &str, sql: &str, binds: &[&str], told: &Told) -> Result<()> {
        let stopped = |error: sqlx::Error| told.stopped(label, &error);
        let owned = AssertSqlSafe(sql.to_owned()).into_sql_str();
        let opened = match self {
            // MySQL refuses to prepare what a transaction that only reads could not run.
            Self::MySql(_) => self.begin_writing(told.timeout).await,
            _ => self.begin(told.timeout).await,
        };
        match opened.map_err(|error| told.unopened(&error))? {
            Open::File(_) => {}
            Open::Sqlite(mut transaction) => {
                transaction.prepare(owned).await.map_err(stopped)?;
            }
            Open::MySql(mut transaction) => {
                transaction.prepare(owned).await.map_err(stopped)?;
            }
            Open::Postgres(mut transaction) => {
                // The driver's way of preparing leaves a named statement behind. A plan is made without running anything.
                let mut arguments = PgArguments::default();
                add_all(&mut arguments, no_values(binds)).map_err(stopped)?;
                let explain = AssertSqlSafe(format!("explain {sql}"));
                let query = sqlx::query_with::<Postgres, _>(explain, arguments).persistent(false);
                query.fetch_all(&mut *transaction).await.map_err(stopped)?;
            }
        }
        Ok(())
    }

    /// The names of the columns that a statement gives, without running it.
    pub async fn columns(&self, label: &str, sql: &str, binds: &[&str], told: &Told) -> Result<Vec<String>> {
        let stopped = |error: sqlx::Error| told.stopped(label, &error);
        if let Self::Postgres { pool, statements } = self {
            let described = (described(sql), no_values(binds));
            let found = describe_first(pool, &described, told.timeout).await;
            statements.lock().unwrap_or_else(PoisonError::into_inner).push(described);
            return found.map_err(stopped);
        }
        let owned = AssertSqlSafe(sql.to_owned()).into_sql_str();
        match self.begin(told.timeout).await.map_err(|error| told.unopened(&error))? {
            Open::Sqlite(mut transaction) => {
                Ok(names(transaction.prepare(owned).await.map_err(stopped)?.columns()))
            }
            Open::MySql(mut transaction) => {
                Ok(names(transaction.prepare(owned).await.map_err(stopped)?.columns()))
            }
            Open::Postgres(_) | Open::File(_) => Ok(Vec::new()),
        }
    }
}

/// The driver's own way of preparing leaves a named statement behind. One row of nulls has the columns, too.
async fn describe_first(
    pool: &PgPool,
    described: &Described,
    timeout: Duration,
) -> sqlx::Result<Vec<String>> {
    let mut attempt = 1;
    loop {
        let mut transaction = pool.begin_with(AssertSqlSafe(read_only(timeout))).await?;
        match describe(&mut transaction, described).await {
            // The connection has learned a type by now, see [`warm_up`].
            Err(sqlx::Error::Database(refusal))
                if attempt < 5 && refusal.code().as_deref() == Some(NO_SUCH_STATEMENT) =>
            {
                attempt += 1;
            }
            done => return done,
        }
    }
}

/// The driver asks the database about each type that it does not know, such as an enum, with a statement that makes
/// PostgreSQL forget the nameless one that was just prepared. So every new connection learns all types before it is used.
pub(super) async fn warm_up(
    connection: &mut PgConnection,
    statements: &Mutex<Vec<Described>>,
) -> sqlx::Result<()> {
    let statements = statements.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for described in &statements {
        let mut transaction = sqlx::Connection::begin(&mut *connection).await?;
        match describe(&mut transaction, described).await {
            // What is wrong with a statement is told where it is read.
            Ok(_) | Err(sqlx::Error::Database(_)) => transaction.rollback().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn describe(connection: &mut PgConnection, described: &Described) -> sqlx::Result<Vec<String>> {
    Ok(names(row_of_nulls(connection, described).await?.columns()))
}

/// One row of nulls with a statement's columns.
pub(super) async fn row_of_nulls(
    connection: &mut PgConnection,
    (sql, binds): &Described,
) -> sqlx::Result<PgRow> {
    let mut arguments = PgArguments::default();
    add_all(&mut arguments, binds.clone())?;
    let query = sqlx::query_with::<Postgres, _>(AssertSqlSafe(sql.clone()), arguments).persistent(false);
    query.fetch_one(connection).await
}

pub(super) fn described(sql: &str) -> String {
    format!("select q.* from (values (1)) one left join (\n{sql}\n) q on false")
}

fn names<C: Column>(columns: &[C]) -> Vec<String> {
    columns.iter().map(|column| column.name().to_owned()).collect()
}

/// Both in one message: the limit is of this transaction.
fn read_only(timeout: Duration) -> String {
    format!(
        "begin isolation level repeatable read read only; set local statement_timeout = {}",
        timeout.as_millis()
    )
}

impl Reader {
    /// The rows as they arrive: neither side holds all of them in memory. `label` is what errors name.
    pub async fn rows<'a>(&'a mut self, label: &'a str, sql: String, binds: Vec<Bind>) -> Result<Rows<'a>> {
        let told = &self.told;
        let stopped = |error: sqlx::Error| told.stopped(label, &error);
        let stream = match &mut self.transaction {
            Open::File(session) => {
                return Ok(Rows::Sqlite(session.rows(sql, binds, told.timeout), label, told));
            }
            Open::Sqlite(transaction) => {
                limit_sqlite(transaction, told.timeout).await.map_err(stopped)?;
                let mut arguments = SqliteArguments::default();
                add_all(&mut arguments, binds).map_err(stopped)?;
                let query = sqlx::query_with::<Sqlite, _>(AssertSqlSafe(sql), arguments).persistent(false);
                let rows = query.fetch(&mut **transaction);
                rows.map_ok(|row| TeamRow::Sqlite(SqliteRow::of(&row))).boxed()
            }
            Open::Postgres(transaction) => {
                let mut arguments = PgArguments::default();
                add_all(&mut arguments, binds).map_err(stopped)?;
                let query = sqlx::query_with::<Postgres, _>(AssertSqlSafe(sql), arguments).persistent(false);
                query.fetch(&mut **transaction).map_ok(TeamRow::Postgres).boxed()
            }
            Open::MySql(transaction) => {
                let mut arguments = MySqlArguments::default();
                add_all(&mut arguments, binds).map_err(stopped)?;
                let query = sqlx::query_with::<MySql, _>(AssertSqlSafe(sql), arguments).persistent(false);
                query.fetch(&mut **transaction).map_ok(TeamRow::MySql).boxed()
            }
        };
        Ok(Rows::Stream(stream, label, told))
    }

    /// Runs a statement that writes; how many rows it touched. The inner error is the database's own word.
    pub async fn execute(&mut self, sql: &str, binds: Vec<Bind>) -> sqlx::Result<u64> {
        let sql = AssertSqlSafe(sql.to_owned());
        let running = async {
            match &mut self.transaction {
                Open::File(_) => Err(sqlx::Error::protocol("a file that is only read")),
                Open::Sqlite(transaction) => {
                    limit_sqlite(transaction, self.told.timeout).await?;
                    let mut arguments = SqliteArguments::default();
                    add_all(&mut arguments, binds)?;
                    let query = sqlx::query_with::<Sqlite, _>(sql, arguments).persistent(false);
                    Ok(query.execute(&mut **transaction).await?.rows_affected())
                }
                Open::Postgres(transaction) => {
                    let mut arguments = PgArguments::default();
                    add_all(&mut arguments, binds)?;
                    let query = sqlx::query_with::<Postgres, _>(sql, arguments).persistent(false);
                    Ok(query.execute(&mut **transaction).await?.rows_affected())
                }
                Open::MySql(transaction) => {
                    let mut arguments = MySqlArguments::default();
                    add_all(&mut arguments, binds)?;
                    let query = sqlx::query_with::<MySql, _>(sql, arguments).persistent(false);
                    Ok(query.execute(&mut **transaction).await?.rows_affected())
                }
            }
        };
        // The database keeps the limit; this is for one that no longer answers.
        match tokio::time::timeout(self.told.timeout + PATIENCE, running).await {
            Ok(done) => done,
            Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    }

    /// Makes everything that was written lasting.
    pub async fn commit(self) -> sqlx::Result<()> {
        match self.transaction {
            Open::File(_) => Ok(()),
            Open::Sqlite(mut transaction) => {
                transaction.lock_handle().await?.remove_progress_handler();
                transaction.commit().await
            }
            Open::Postgres(transaction) => transaction.commit().await,
            Open::MySql(transaction) => transaction.commit().await,
        }
    }

    /// Ends the moment, so that no transaction stays open.
    pub async fn end(self) -> Result<()> {
        let Self { transaction, told } = self;
        let ended = match transaction {
            Open::File(session) => return session.end().await.context("end the reading of a file"),
            Open::Sqlite(mut transaction) => {
                transaction
                    .lock_handle()
                    .await
                    .map_err(|error| told.unopened(&error))?
                    .remove_progress_handler();
                transaction.rollback().await
            }
            Open::Postgres(transaction) => transaction.rollback().await,
            Open::MySql(transaction) => transaction.rollback().await,
        };
        ended.map_err(|error| {
            Trouble::new(format!("{}: the end of reading was not heard: {error}", told.setting), "").into()
        })
    }
}

/// From now on its statements are interrupted when this time is over.
async fn limit_sqlite(transaction: &mut Transaction<'static, Sqlite>, timeout: Duration) -> sqlx::Result<()> {
    let until = Instant::now() + timeout;
    let mut handle = transaction.lock_handle().await?;
    handle.set_progress_handler(sqlite::STEPS, move || Instant::now() < until);
    Ok(())
}

/// Rows of one statement, with what errors name.
pub(super) enum Rows<'a> {
    Sqlite(sqlite::Rows, &'a str, &'a Told),
    Stream(BoxStream<'a, sqlx::Result<TeamRow>>, &'a str, &'a Told),
}

impl Rows<'_> {
    /// The next row, `None` at the end.
    pub async fn next(&mut self) -> Result<Option<TeamRow>> {
        match self {
            Self::Sqlite(rows, label, told) => {
                let row = rows.next().await.map_err(|error| told.stopped_by_sqlite(label, &error))?;
                Ok(row.map(TeamRow::Sqlite))
            }
            // The database keeps the limit; this is for one that no longer answers.
            Self::Stream(stream, label, told) => {
                match tokio::time::timeout(told.timeout + PATIENCE, stream.try_next()).await {
                    Ok(row) => row.map_err(|error| told.stopped(label, &error)),
                    Err(_) => Err(told.too_long(label, "the database no longer answers")),
                }
            }
        }
    }
}

fn add_all<A: Arguments>(arguments: &mut A, binds: Vec<Bind>) -> sqlx::Result<()>
where
    i64: for<'q> sqlx::Encode<'q, A::Database> + Type<A::Database>,
    String: for<'q> sqlx::Encode<'q, A::Database> + Type<A::Database>,
    Option<i64>: for<'q> sqlx::Encode<'q, A::Database> + Type<A::Database>,
    Option<String>: for<'q> sqlx::Encode<'q, A::Database> + Type<A::Database>,
    Vec<u8>: for<'q> sqlx::Encode<'q, A::Database> + Type<A::Database>,
    Option<Vec<u8>>: for<'q> sqlx::Encode<'q, A::Database> + Type<A::Database>,
{
    for bind in binds {
        match bind {
            Bind::Integer(number) => arguments.add(number),
            Bind::Text(text) => arguments.add(text),
            Bind::Bytes(bytes) => arguments.add(bytes),
            Bind::NoBytes => arguments.add(None::<Vec<u8>>),
            Bind::NoInteger => arguments.add(None::<i64>),
            Bind::NoText => arguments.add(None::<String>),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(())
}

/// No value for each bind, of the type that its name says: instants and amounts are whole numbers.
pub(super) fn no_values(binds: &[&str]) -> Vec<Bind> {
    let no_value = |bind: &&str| match *bind {
        name if name.ends_with("_us") || name.ends_with("_minor") => Bind::NoInteger,
        name if name.ends_with("_bytes") => Bind::NoBytes,
        _ => Bind::NoText,
    };
    binds.iter().map(no_value).collect()
}
