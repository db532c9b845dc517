//! recon's own tables. One function per file under `queries/store/`; statements keep to what SQLite
//! and PostgreSQL share, with `$1` parameters.
//!
//! The one thing to get right: every transaction that decides by what it reads takes the write lock at its
//! start ([`Store::begin_write`]), so that nobody else writes between its reading and its writing.
//! [`Store::begin`] is for writes that rely on unique keys alone.

pub mod arrivals;
pub mod batch;
pub mod chain;
pub mod history;
pub mod inbox;
pub mod lease;
pub mod ledger;
pub mod life;
pub mod notification;
pub mod operating;
pub mod others;
pub mod outbox;
pub mod plans;
pub mod runs;
pub mod sent;
pub mod states;
pub mod work;
mod aliases;
mod asked;
mod database;
mod health;
mod inbox_report;
mod intents;
mod invoices;
mod migrations;
mod pages;
mod postgres;
mod records;
mod slots;

pub use aliases::{AliasTarget, aliases_of_roots, known_as, resolve, save_aliases};
pub use asked::{asked_whole, save_asked};
pub use database::{Database, shown_url};
pub use health::{
    Backlog, Untold, add_refused, backlog, has_untold, keep_told, repeated_deliveries, take_untold,
};
pub use inbox_report::{Completion, ScopeHealth, inbox_health, refused};
pub use intents::{charges_of_intents, intents_kept_under, save_intents, set_intents_kept_under};
pub use invoices::{invoices_of, save_invoices};
pub use pages::{PageRecord, Slice, SliceStatus, StreamKey};
pub use slots::{LimitKey, Reserved};
pub use records::{
    StoredRecord, events_by_id, record_ages, record_ages_in, records_by_id, records_by_id_in, records_page,
};

use anyhow::{Context, Result, bail};
use sqlx::any::AnyPoolOptions;
use sqlx::{Any, AnyConnection, AnyPool, Connection, Executor, Transaction};
use std::time::Duration;
use thiserror::Error;

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Create it if it is not there, bring its tables up to date.
    ReadWrite,
    /// Change what is there, and bring its tables up to date; a missing store is an error.
    Existing,
    /// Only look; a missing store is an error.
    ReadOnly,
}

/// A store that was not to be made is not there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no store at {path}: nothing was run with this configuration yet")]
pub struct NoStore {
    path: String,
}

impl NoStore {
    /// What to do about it.
    pub const HINT: &str = "a run (`recon --since 2024-05-01`) makes it, and so do `recon serve` and `recon work`; if one \
        has run, `[store] url` or the working directory is another one here";
}

/// An open store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
    database: Database,
}

/// How long a writer waits for another writer's lock.
const LOCK_WAIT_MS: u32 = 10_000;
const CONNECTIONS_MAX: u32 = 8;
/// Page cache of a writing connection. SQLite's default of 2 MB makes rows with random keys (event ids,
/// hashes) read and write the same pages again and again.
const CACHE_KIB: u32 = 64 * 1024;
/// Pages (4 KiB) that the write-ahead log may hold before they are copied into the file.
const CHECKPOINT_PAGES: u32 = 16 * 1024;
/// How often a writer waits so before it gives up.
pub const LOCK_ATTEMPTS: u32 = 3;

impl Store {
    /// Opens `sqlite:PATH` or `postgres://…`.
    ///
    /// # Errors
    /// When the URL is of another kind, the database cannot be opened ([`NoStore`] where it is not there and not
    /// to be made), or a migration fails. No error shows a password.
    pub async fn open(url: &str, access: Access) -> Result<Self> {
        sqlx::any::install_default_drivers();
        match Database::of_url(url) {
            Some(Database::Sqlite) => Self::open_sqlite(url, access).await,
            Some(Database::Postgres) => Self::open_postgres(url, access).await,
            None => bail!("store url must begin with `sqlite:` or `postgres://`"),
        }
    }

    async fn open_sqlite(url: &str, access: Access) -> Result<Self> {
        let path = shown_url(url);
        if access != Access::ReadWrite && !std::path::Path::new(&path).exists() {
            return Err(NoStore { path: path.clone() }.into());
        }
        let mode = match access {
            Access::ReadWrite => "rwc",
            Access::Existing => "rw",
            Access::ReadOnly => "ro",
        };
        let url = format!("sqlite:{path}?mode={mode}");
        let context = || format!("open the store {path}");
        // A pool tries a failing connection again until its time is over; one of our own says why at once.
        let mut first = AnyConnection::connect(&url).await.with_context(context)?;
        set_pragmas(&mut first, access).await.with_context(context)?;
        first.close().await.with_context(context)?;
        let options =
            pool_options().after_connect(move |connection, _| Box::pin(set_pragmas(connection, access)));
        let pool = options.connect(&url).await.with_context(context)?;
        if access != Access::ReadOnly {
            migrations::bring_sqlite_up_to_date(&pool)
                .await
                .with_context(|| format!("bring {path} up to date"))?;
        }
        Ok(Self { pool, database: Database::Sqlite })
    }

    async fn open_postgres(url: &str, access: Access) -> Result<Self> {
        let place = shown_url(url);
        let context = || format!("open the store {place}");
        // As above: the first connection says why at once.
        let mut first = AnyConnection::connect(url).await.with_context(context)?;
        let has_tables = postgres::has_tables(&mut first, url).await.with_context(context)?;
        if access != Access::ReadWrite && !has_tables {
            return Err(NoStore { path: place }.into());
        }
        let is_current = access == Access::ReadOnly
            || has_tables
                && migrations::is_up_to_date(&mut first, Database::Postgres).await.with_context(context)?;
        first.close().await.with_context(context)?;
        let pool = pool_options().connect(url).await.with_context(context)?;
        if !is_current {
            migrations::bring_postgres_up_to_date(&pool)
                .await
                .with_context(|| format!("bring {place} up to date"))?;
        }
        Ok(Self { pool, database: Database::Postgres })
    }

    /// For reads.
    #[must_use]
    pub fn pool(&self) -> &AnyPool {
        &self.pool
    }

    /// Which database it is.
    #[must_use]
    pub fn database(&self) -> Database {
        self.database
    }

    /// Starts a write transaction that holds the store's write lock from its first statement: what it reads
    /// stays as it is until it ends, as far as others take the lock, too.
    ///
    /// # Errors
    /// When the lock cannot be had in time.
    pub async fn begin_write(&self) -> Result<Transaction<'static, Any>> {
        let mut attempt = 1;
        loop {
            let begun = match self.database {
                Database::Sqlite => self.pool.begin_with("BEGIN IMMEDIATE").await,
                Database::Postgres => postgres::begin_write(&self.pool).await,
            };
            match begun {
                Err(error) if attempt < LOCK_ATTEMPTS && is_busy_code(&error) => attempt += 1,
                other => return other.context("take the store's write lock"),
            }
        }
    }

    /// Starts a write transaction that waits for no other writer where the database can do without
    /// (PostgreSQL), for writes whose unique keys alone decide: others may write between its statements.
    /// Rows are to be written in key order, and an error that [`is_busy`] knows means to start again.
    ///
    /// # Errors
    /// When the database cannot be reached, or SQLite's one write lock cannot be had in time.
    pub async fn begin(&self) -> Result<Transaction<'static, Any>> {
        match self.database {
            Database::Sqlite => self.begin_write().await,
            Database::Postgres => postgres::begin(&self.pool).await.context("begin to write"),
        }
    }

    /// Starts a transaction for statements that find rows by many keys at once. It sees what is committed, anew for each
    /// statement; outside of it PostgreSQL may take a plan that reads whole tables.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn begin_read(&self) -> Result<Transaction<'static, Any>> {
        match self.database {
            Database::Sqlite => self.pool.begin().await,
            Database::Postgres => postgres::begin_read(&self.pool).await,
        }
        .context("begin to read")
    }

    /// Lets PostgreSQL look at tables that it knows nothing of, or that have grown much since: it would take any part of a
    /// new table for a single row, and read all of it for each key. Does nothing on SQLite, nor where the user owns no
    /// tables; what goes wrong costs time only, so it is logged.
    pub async fn know_sizes(&self) {
        if self.database == Database::Postgres
            && let Err(error) = postgres::analyze_grown(&self.pool).await
        {
            tracing::warn!("PostgreSQL was not told of what its tables hold now: {error}");
        }
    }

    /// Copies what SQLite's write-ahead log holds into the file, as far as that keeps nobody waiting
    /// (<https://sqlite.org/pragma.html#pragma_wal_checkpoint>). Without it the commit that fills the log up
    /// copies all of it. Does nothing on PostgreSQL, which does so by itself.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn shorten_log(&self) -> Result<()> {
        if self.database == Database::Sqlite {
            let shortened = sqlx::query("pragma wal_checkpoint(passive)").fetch_all(&self.pool).await;
            shortened.context("shorten the write-ahead log")?;
        }
        Ok(())
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Whether an error says that somebody else holds the lock, so that the same transaction may be tried
/// again from its start: SQLite's `SQLITE_BUSY` (5) and `SQLITE_LOCKED` (6) with their extended codes,
/// <https://sqlite.org/rescode.html>; PostgreSQL's serialization failure, deadlock and lock not available,
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
#[must_use]
pub fn is_busy(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<sqlx::Error>().is_some_and(is_busy_code))
}

fn is_busy_code(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    match code.as_deref() {
        Some("40001" | "40P01" | "55P03") => true,
        Some(code) => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6) && code < 10_000),
        None => false,
    }
}

/// Whether an error says that the store works and refuses what it was given: SQLite's `SQLITE_TOOBIG` (18),
/// `SQLITE_CONSTRAINT` (19) and `SQLITE_MISMATCH` (20) with their extended codes; PostgreSQL's classes 21
/// (cardinality), 22 (data exception), 23 (integrity), 54 (program limit) and P0 (raised by a trigger).
#[must_use]
pub fn is_about_data(error: &anyhow::Error) -> bool {
    let is_code = |error: &sqlx::Error| {
        let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
        code.is_some_and(|code| is_data_code(&code))
    };
    error.chain().any(|cause| cause.downcast_ref::<sqlx::Error>().is_some_and(is_code))
}

fn is_data_code(code: &str) -> bool {
    match code.get(..2) {
        // SQLSTATE has five characters; SQLite's codes are numbers of at most four digits.
        Some(class) if code.len() == 5 => matches!(class, "21" | "22" | "23" | "54" | "P0"),
        _ => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 18..=20)),
    }
}

fn pool_options() -> AnyPoolOptions {
    AnyPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(Duration::from_secs(30))
        // Where SQLite itself rolled back (a full disk), the driver goes on counting the transaction.
        .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
}

async fn set_pragmas(connection: &mut AnyConnection, access: Access) -> sqlx::Result<()> {
    let wait = format!("pragma busy_timeout = {LOCK_WAIT_MS}");
    connection.execute(sqlx::AssertSqlSafe(wait)).await?;
    if access != Access::ReadOnly {
        log_ahead(connection).await?;
        connection.execute("pragma synchronous = full").await?;
        connection.execute(sqlx::AssertSqlSafe(format!("pragma cache_size = -{CACHE_KIB}"))).await?;
        connection
            .execute(sqlx::AssertSqlSafe(format!("pragma wal_autocheckpoint = {CHECKPOINT_PAGES}")))
            .await?;
    }
    Ok(())
}

/// Several processes may meet at a new store. Whoever finds another one at this very step is told so at once, whatever
/// the time is for which a lock is waited for (<https://sqlite.org/wal.html#activating_and_configuring_wal_mode>).
async fn log_ahead(connection: &mut AnyConnection) -> sqlx::Result<()> {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    loop {
        match connection.execute("pragma journal_mode = wal").await {
            Err(error) if is_busy_code(&error) && waited < Duration::from_millis(LOCK_WAIT_MS.into()) => {
                tokio::time::sleep(PAUSE).await;
                waited += PAUSE;
            }
            done => return done.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_database_says_of_data_is_told_from_its_own_trouble() {
        for code in ["23505", "P0001", "22001", "22021", "54000", "19", "1811", "18", "20"] {
            assert!(is_data_code(code), "{code}");
        }
        for code in [
            "57P01", "08006", "53100", "25006", "57014", "42501", "42P01", "40001", "5", "517", "13", "8",
            "1",
        ] {
            assert!(!is_data_code(code), "{code}");
        }
    }
}
