//! Opening a side's database. Whatever its owner's defaults are, a statement must mean the same: a session has this
//! program's character set, time zone and modes, and may only read, but for the one that carries corrections out.

use super::reader::{Pool, warm_up};
use super::sqlite::LOCK_WAIT;
use super::trouble::Told;
use crate::config::Unusable;
use anyhow::Result;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, MySqlConnection, Row};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CONNECTIONS_MAX: u32 = 4;
/// How long opening a connection may take.
const CONNECT_WAIT: Duration = Duration::from_secs(30);

/// What a database is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reading, at one moment.
    Read,
    /// Carrying corrections out: what others commit is seen at once.
    Write,
}

/// Opens a file. `path` is as the setting names it.
pub(super) async fn open_sqlite(path: &str, told: &Told, purpose: Purpose) -> Result<Pool> {
    if !Path::new(path).is_file() {
        return Err(Unusable::new(
            format!("{} names {path}, and there is no such file", told.setting),
            "name the database that holds the books",
        )
        .into());
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(purpose == Purpose::Read)
        .busy_timeout(LOCK_WAIT);
    let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS_MAX).connect_with(options).await;
    let pool = pool.map_err(|error| told.unopened(&error))?;
    Ok(Pool::Sqlite { pool, path: path.to_owned() })
}

/// Opens a PostgreSQL, or a pooler before one. Poolers refuse what they cannot keep for each of their clients, so
/// nothing is set at the start but what pgbouncer knows; the rest is local to each transaction.
pub(super) async fn open_postgres(url: &str, told: &Told) -> Result<Pool> {
    let options: PgConnectOptions = url.parse().map_err(|error| told.unopened(&error))?;
    let options = options.extra_float_digits(None).statement_cache_capacity(0);
    // A pool tries a failing connection again until its time is over; one of our own says why at once.
    let first = in_time(options.connect(), told).await?;
    first.close().await.map_err(|error| told.unopened(&error))?;
    let statements = Arc::new(Mutex::new(Vec::new()));
    let known = Arc::clone(&statements);
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(CONNECT_WAIT)
        .after_connect(move |connection, _| {
            let known = Arc::clone(&known);
            Box::pin(async move { warm_up(connection, &known).await })
        })
        .connect_with(options)
        .await;
    Ok(Pool::Postgres { pool: pool.map_err(|error| told.unopened(&error))?, statements })
}

/// Opens a MySQL or MariaDB.
pub(super) async fn open_mysql(url: &str, told: &Told, purpose: Purpose) -> Result<Pool> {
    let options: MySqlConnectOptions = url.parse().map_err(|error| told.unopened(&error))?;
    let options = options
        .charset("utf8mb4")
        .timezone("+00:00".to_owned())
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .statement_cache_capacity(0);
    let mut first = in_time(options.connect(), told).await?;
    let session = session(&mut first, told.timeout, purpose).await.map_err(|error| told.unopened(&error))?;
    first.execute(AssertSqlSafe(session.clone())).await.map_err(|error| told.unopened(&error))?;
    first.close().await.map_err(|error| told.unopened(&error))?;
    let pool = MySqlPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(CONNECT_WAIT)
        .after_connect(move |connection, _| {
            let session = session.clone();
            Box::pin(async move { connection.execute(AssertSqlSafe(session)).await.map(drop) })
        })
        .connect_with(options)
        .await;
    Ok(Pool::MySql(pool.map_err(|error| told.unopened(&error))?))
}

/// What `sql_mode` holds in our sessions: `||` joins texts as in other databases; a select with `group by` may not pick
/// any value of a group; a difference of unsigned numbers may be negative. That it does *not* hold `ANSI_QUOTES`,
/// `NO_BACKSLASH_ESCAPES` and `PAD_CHAR_TO_FULL_LENGTH` is what the reading of statements and ids relies on.
const SQL_MODE: &str = "PIPES_AS_CONCAT,ONLY_FULL_GROUP_BY,NO_UNSIGNED_SUBTRACTION,STRICT_ALL_TABLES";

/// What is set in each session. `div_precision_increment` is how many digits a division adds: with six of them,
/// `:from_us / 1000000` keeps its microseconds.
async fn session(
    connection: &mut MySqlConnection,
    timeout: Duration,
    purpose: Purpose,
) -> sqlx::Result<String> {
    let isolation = match purpose {
        Purpose::Read => "REPEATABLE-READ",
        Purpose::Write => "READ-COMMITTED",
    };
    let version: String = sqlx::query("select version() as version")
        .persistent(false)
        .fetch_one(connection)
        .await?
        .try_get_unchecked("version")?;
    let own = if version.to_ascii_lowercase().contains("mariadb") {
        format!("max_statement_time = {}, tx_isolation = '{isolation}'", timeout.as_secs())
    } else {
        format!("max_execution_time = {}, transaction_isolation = '{isolation}'", timeout.as_millis())
    };
    Ok(format!("set session sql_mode = '{SQL_MODE}', div_precision_increment = 6, {own}"))
}

async fn in_time<T>(connecting: impl Future<Output = sqlx::Result<T>>, told: &Told) -> Result<T> {
    match tokio::time::timeout(CONNECT_WAIT, connecting).await {
        Ok(connected) => connected.map_err(|error| told.unopened(&error)),
        Err(_) => Err(told.unopened(&sqlx::Error::PoolTimedOut)),
    }
}
