//! recon's own tables. One function per file under `queries/store/`; statements keep to what SQLite
//! and PostgreSQL share, with `$1` parameters.
//!
//! The one thing to get right: every write transaction takes the write lock at its start
//! ([`Store::begin_write`]), so that no read is ever upgraded to a write and refused half-way.

mod pages;

pub use pages::{PageRecord, Slice, SliceStatus, StreamKey};

use anyhow::{Context, Result, bail};
use sqlx::any::AnyPoolOptions;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Any, AnyConnection, AnyPool, Executor, SqlSafeStr, Transaction};
use std::time::Duration;

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Create it if it is not there, bring its tables up to date.
    ReadWrite,
    /// Only look; a missing store is an error.
    ReadOnly,
}

/// An open store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
}

/// How long a writer waits for another writer's lock.
const LOCK_WAIT_MS: u32 = 10_000;
const CONNECTIONS_MAX: u32 = 8;

impl Store {
    /// Opens `sqlite:PATH`.
    ///
    /// # Errors
    /// When the URL is not `sqlite:`, the file cannot be opened, or a migration fails.
    pub async fn open(url: &str, access: Access) -> Result<Self> {
        let Some(path) = url.strip_prefix("sqlite:") else {
            bail!("store url must begin with `sqlite:`");
        };
        sqlx::any::install_default_drivers();
        let mode = if access == Access::ReadWrite { "rwc" } else { "ro" };
        let pool = AnyPoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .acquire_timeout(Duration::from_secs(30))
            .after_connect(move |connection, _| Box::pin(set_pragmas(connection, access)))
            .connect(&format!("sqlite:{path}?mode={mode}"))
            .await
            .with_context(|| format!("open the store {path}"))?;
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
        self.pool.begin_with("BEGIN IMMEDIATE").await.context("take the store's write lock")
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// The migrations, forward only; a file is never edited after it has landed.
fn migrator() -> Migrator {
    const FILES: [(i64, &str, &str); 1] = [(1, "store", include_str!("../../migrations/0001_store.sql"))];
    let migrations = FILES.map(|(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.into())
}

async fn set_pragmas(connection: &mut AnyConnection, access: Access) -> sqlx::Result<()> {
    if access == Access::ReadWrite {
        connection.execute("pragma journal_mode = wal").await?;
        connection.execute("pragma synchronous = full").await?;
    }
    let wait = format!("pragma busy_timeout = {LOCK_WAIT_MS}");
    connection.execute(sqlx::AssertSqlSafe(wait)).await?;
    Ok(())
}
