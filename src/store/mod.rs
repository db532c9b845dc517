//! recon's own tables. One function per file under `queries/store/`; statements keep to what SQLite
//! and PostgreSQL share, with `$1` parameters.
//!
//! The one thing to get right: every write transaction takes the write lock at its start
//! ([`Store::begin_write`]), so that no read is ever upgraded to a write and refused half-way.

pub mod batch;
pub mod chain;
pub mod history;
pub mod inbox;
pub mod lease;
pub mod ledger;
pub mod plans;
pub mod runs;
pub mod states;
mod aliases;
mod asked;
mod health;
mod intents;
mod invoices;
mod pages;
mod records;

pub use aliases::{AliasTarget, aliases_of_roots, known_as, resolve, save_aliases};
pub use asked::{asked_whole, save_asked};
pub use health::{ScopeHealth, inbox_health};
pub use intents::{charges_of_intents, intents_kept_under, save_intents, set_intents_kept_under};
pub use invoices::{invoices_of, save_invoices};
pub use pages::{PageRecord, Slice, SliceStatus, StreamKey};
pub use records::{StoredRecord, events_by_id, record_ages, records_by_id, records_page};

use anyhow::{Context, Result, bail};
use sqlx::any::AnyPoolOptions;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Any, AnyConnection, AnyPool, Connection, Executor, SqlSafeStr, Transaction};
use std::time::Duration;
use thiserror::Error;

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Create it if it is not there, bring its tables up to date.
    ReadWrite,
    /// Only look; a missing store is an error.
    ReadOnly,
}

/// A store that was only to be looked at is not there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no store at {path}: nothing was run with this configuration yet")]
pub struct NoStore {
    path: String,
}

impl NoStore {
    /// What to do about it.
    pub const HINT: &str = "run `recon` once, such as `recon --since 2024-05-01`; if it has run, `[store] url` or the \
        working directory is another one here";
}

/// An open store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
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
    /// Opens `sqlite:PATH`.
    ///
    /// # Errors
    /// When the URL is not `sqlite:`, the file cannot be opened ([`NoStore`] where it was only to be
    /// looked at and is not there), or a migration fails.
    pub async fn open(url: &str, access: Access) -> Result<Self> {
        let Some(path) = url.strip_prefix("sqlite:") else {
            bail!("store url must begin with `sqlite:`");
        };
        if access == Access::ReadOnly && !std::path::Path::new(path).exists() {
            return Err(NoStore { path: path.to_owned() }.into());
        }
        sqlx::any::install_default_drivers();
        let mode = if access == Access::ReadWrite { "rwc" } else { "ro" };
        let url = format!("sqlite:{path}?mode={mode}");
        let context = || format!("open the store {path}");
        // A pool tries a failing connection again until its time is over; one of our own says why at once.
        let mut first = AnyConnection::connect(&url).await.with_context(context)?;
        set_pragmas(&mut first, access).await.with_context(context)?;
        first.close().await.with_context(context)?;
        let pool = AnyPoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(Duration::from_secs(30))
            .after_connect(move |connection, _| Box::pin(set_pragmas(connection, access)))
            // Where SQLite itself rolled back (a full disk), the driver goes on counting the transaction.
            .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
            .connect(&url)
            .await
            .with_context(context)?;
        let store = Self { pool };
        if access == Access::ReadWrite {
            migrator().run(&store.pool).await.with_context(|| format!("bring {path} up to date"))?;
        }
        Ok(store)
    }

    /// For reads.
    #[must_use]
    pub fn pool(&self) -> &AnyPool {
        &self.pool
    }

    /// Starts a write transaction that holds the write lock from its first statement.
    ///
    /// # Errors
    /// When the lock cannot be had in time.
    pub async fn begin_write(&self) -> Result<Transaction<'static, Any>> {
        let mut attempt = 1;
        loop {
            match self.pool.begin_with("BEGIN IMMEDIATE").await {
                Err(error) if attempt < LOCK_ATTEMPTS && is_busy_code(&error) => attempt += 1,
                other => return other.context("take the store's write lock"),
            }
        }
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Whether an error says that somebody else holds the lock, so that the same transaction may be tried
/// again from its start: SQLite's `SQLITE_BUSY` (5) and `SQLITE_LOCKED` (6) with their extended codes,
/// <https://sqlite.org/rescode.html>; PostgreSQL's 40001 and 40P01.
#[must_use]
pub fn is_busy(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<sqlx::Error>().is_some_and(is_busy_code))
}

fn is_busy_code(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    match code.as_deref() {
        Some("40001" | "40P01") => true,
        Some(code) => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6) && code < 10_000),
        None => false,
    }
}

/// The migrations, forward only; a file is never edited after it has landed.
fn migrator() -> Migrator {
    const FILES: [(i64, &str, &str); 5] = [
        (1, "store", include_str!("../../migrations/0001_store.sql")),
        (2, "run error", include_str!("../../migrations/0002_run_error.sql")),
        (3, "intent charge", include_str!("../../migrations/0003_intent_charge.sql")),
        (4, "payment asked", include_str!("../../migrations/0004_payment_asked.sql")),
        (5, "invoice part", include_str!("../../migrations/0005_invoice_part.sql")),
    ];
    let migrations = FILES.map(|(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.into())
}

async fn set_pragmas(connection: &mut AnyConnection, access: Access) -> sqlx::Result<()> {
    if access == Access::ReadWrite {
        connection.execute("pragma journal_mode = wal").await?;
        connection.execute("pragma synchronous = full").await?;
        connection.execute(sqlx::AssertSqlSafe(format!("pragma cache_size = -{CACHE_KIB}"))).await?;
        connection
            .execute(sqlx::AssertSqlSafe(format!("pragma wal_autocheckpoint = {CHECKPOINT_PAGES}")))
            .await?;
    }
    let wait = format!("pragma busy_timeout = {LOCK_WAIT_MS}");
    connection.execute(sqlx::AssertSqlSafe(wait)).await?;
    Ok(())
}
