//! Holds a process in the middle of its transaction, and sees from outside that it is there.
//!
//! The one thing to get right: that it is there is seen, not assumed. SQLite writes pages of an open transaction into
//! the write-ahead log's file only when a connection's memory is full (<https://sqlite.org/wal.html>); the trigger
//! fills it, so the file grows while nothing is committed.

use super::Point;
use crate::store::Store;
use anyhow::{Context, Result};
use sqlx::AssertSqlSafe;
use std::path::{Path, PathBuf};

const FILLERS: &str = include_str!("../../../queries/demo/recovery/fillers.sql");
const HOLD: &str = include_str!("../../../queries/demo/recovery/hold.sql");
const RELEASE: &str = include_str!("../../../queries/demo/recovery/release.sql");
const CLEAR: &str = include_str!("../../../queries/demo/recovery/clear.sql");

/// Growth of the log that only a hold explains.
const GROWTH_BYTES: u64 = 1 << 20;

/// Puts what holds need into the store.
pub(super) async fn prepare(store: &Store) -> Result<()> {
    execute(store, FILLERS).await.context("prepare holds")
}

/// Takes it out again.
pub(super) async fn clear(store: &Store) -> Result<()> {
    execute(store, CLEAR).await.context("clear what holds needed")
}

/// A hold that stands.
#[derive(Debug)]
pub(super) struct Hold {
    log: PathBuf,
    bytes_before: u64,
}

impl Hold {
    /// Holds the next process that comes to the point. `log` is the store's write-ahead log.
    pub(super) async fn place(store: &Store, point: Point, log: &Path) -> Result<Self> {
        let moment = match point {
            Point::Receipt => "insert on inbox_event",
            Point::Accepted | Point::Change => "insert on outbox_message",
            Point::Result => "update of sent_at_us on outbox_message",
        };
        // An empty log: what an earlier hold left in its file would hide the growth.
        let emptied = sqlx::query("pragma wal_checkpoint(truncate)").fetch_all(store.pool()).await;
        emptied.context("empty the write-ahead log")?;
        execute(store, &HOLD.replace("{moment}", moment)).await.context("place a hold")?;
        Ok(Self { log: log.to_owned(), bytes_before: bytes(log) })
    }

    /// Whether somebody is held now.
    pub(super) fn is_held(&self) -> bool {
        bytes(&self.log) > self.bytes_before + GROWTH_BYTES
    }

    /// Whether this text stands in the log's file. It may be of a transaction that was never committed.
    pub(super) fn has_written(&self, text: &str) -> bool {
        let Ok(bytes) = std::fs::read(&self.log) else { return false };
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// Takes the hold away. Whoever was held must be gone.
    pub(super) async fn release(self, store: &Store) -> Result<()> {
        execute(store, RELEASE).await.context("take a hold away")
    }
}

fn bytes(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |metadata| metadata.len())
}

async fn execute(store: &Store, sql: &str) -> Result<()> {
    let mut tx = store.begin_write().await?;
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut *tx).await?;
    tx.commit().await.context("commit")
}
