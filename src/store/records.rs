//! What the provider's lists returned, read back: bytes as received.

use super::batch::{chunks, is_storable, repeat_values};
use super::{Database, Store};
use crate::record::{Scope, Window};
use anyhow::{Context, Result};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use std::collections::BTreeSet;

/// One record of one stream.
#[derive(Clone, Debug)]
pub struct StoredRecord {
    /// Stream.
    pub stream: String,
    /// The record's id.
    pub record_id: String,
    /// Creation at the provider, Unix µs.
    pub created_us: i64,
    /// When it was read from the provider, Unix µs; 0 where it was not asked for.
    pub fetched_at_us: i64,
    /// Bytes as received.
    pub body: Vec<u8>,
}

impl StoredRecord {
    /// The record as a place in its list.
    #[must_use]
    pub fn without_body(&self) -> Self {
        let (stream, record_id) = (self.stream.clone(), self.record_id.clone());
        Self { stream, record_id, body: Vec::new(), ..*self }
    }
}

/// Rows of one page of [`records_page`].
const PAGE_ROWS: i64 = 1_000;

/// The next page of a stream's records that were created inside the window, in (creation, id) order.
/// `after` is the last record of the page before; an empty page ends the list.
///
/// Pages rather than one long read, so that no read transaction keeps the log from being checkpointed.
///
/// # Errors
/// When the store cannot be read.
pub async fn records_page(
    store: &Store,
    scope: &Scope,
    stream: &str,
    window: Window,
    after: Option<&StoredRecord>,
) -> Result<Vec<StoredRecord>> {
    let (after_us, after_id) =
        after.map_or((i64::MIN, String::new()), |record| (record.created_us, record.record_id.clone()));
    let rows = sqlx::query(include_str!("../../queries/store/records_in_window.sql"))
        .bind(scope.provider.to_string())
        .bind(scope.account.to_string())
        .bind(scope.mode.to_string())
        .bind(stream.to_owned())
        .bind(window.from_us)
        .bind(window.until_us)
        .bind(after_us)
        .bind(after_id)
        .bind(PAGE_ROWS)
        .fetch_all(store.pool())
        .await
        .with_context(|| format!("read stored {stream}"))?;
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        found.push(StoredRecord {
            stream: stream.to_owned(),
            record_id: row.try_get("record_id")?,
            created_us: row.try_get("created_us")?,
            fetched_at_us: 0,
            body: row.try_get("body")?,
        });
    }
    Ok(found)
}

/// Records with these ids in any stream but events, and created outside of `window` where one is
/// given; in (stream, id) order within each batch.
///
/// # Errors
/// When the store cannot be read.
pub async fn records_by_id(
    store: &Store,
    scope: &Scope,
    ids: &BTreeSet<String>,
    outside: Option<Window>,
) -> Result<Vec<StoredRecord>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut tx = store.begin_read().await?;
    let found = records_by_id_in(&mut tx, scope, ids, outside).await?;
    tx.commit().await.context("read stored records by id")?;
    Ok(found)
}

/// As [`records_by_id`], within a transaction.
///
/// # Errors
/// When the store cannot be read.
pub async fn records_by_id_in(
    connection: &mut AnyConnection,
    scope: &Scope,
    ids: &BTreeSet<String>,
    outside: Option<Window>,
) -> Result<Vec<StoredRecord>> {
    let outside = outside.unwrap_or(Window { from_us: i64::MIN, until_us: i64::MIN });
    let mut found = Vec::new();
    let statement = include_str!("../../queries/store/records_by_id.sql");
    for row in rows_by_id(connection, scope, statement, Some(outside), ids).await? {
        found.push(StoredRecord {
            stream: row.try_get("stream")?,
            record_id: row.try_get("record_id")?,
            created_us: row.try_get("created_us")?,
            fetched_at_us: row.try_get("fetched_at_us")?,
            body: row.try_get("body")?,
        });
    }
    Ok(found)
}

/// (id, creation, last read) of stored records in any stream but events, Unix µs.
///
/// # Errors
/// When the store cannot be read.
pub async fn record_ages(
    store: &Store,
    scope: &Scope,
    ids: &BTreeSet<String>,
) -> Result<Vec<(String, i64, i64)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut tx = store.begin_read().await?;
    let found = record_ages_in(&mut tx, scope, ids).await?;
    tx.commit().await.context("read the ages of records")?;
    Ok(found)
}

/// As [`record_ages`], within a transaction.
///
/// # Errors
/// When the store cannot be read.
pub async fn record_ages_in(
    connection: &mut AnyConnection,
    scope: &Scope,
    ids: &BTreeSet<String>,
) -> Result<Vec<(String, i64, i64)>> {
    let mut found = Vec::new();
    let statement = include_str!("../../queries/store/record_ages.sql");
    for row in rows_by_id(connection, scope, statement, None, ids).await? {
        found.push((row.try_get("record_id")?, row.try_get("created_us")?, row.try_get("fetched_at_us")?));
    }
    Ok(found)
}

/// Stored events with these ids, in id order within each batch.
///
/// # Errors
/// When the store cannot be read.
pub async fn events_by_id(store: &Store, scope: &Scope, ids: &BTreeSet<String>) -> Result<Vec<StoredRecord>> {
    let mut found = Vec::new();
    if ids.is_empty() {
        return Ok(found);
    }
    let statement = include_str!("../../queries/store/events_by_id.sql");
    let mut tx = store.begin_read().await?;
    let rows = rows_by_id(&mut tx, scope, statement, None, ids).await?;
    tx.commit().await.context("read stored events by id")?;
    for row in rows {
        found.push(StoredRecord {
            stream: "events".to_owned(),
            record_id: row.try_get("record_id")?,
            created_us: row.try_get("created_us")?,
            fetched_at_us: 0,
            body: row.try_get("body")?,
        });
    }
    Ok(found)
}

/// Rows of a statement that binds a scope, the bounds of `outside` where it has them, and ids.
async fn rows_by_id(
    connection: &mut AnyConnection,
    scope: &Scope,
    statement: &'static str,
    outside: Option<Window>,
    ids: &BTreeSet<String>,
) -> Result<Vec<AnyRow>> {
    let mut found = Vec::new();
    let ids: Vec<&String> = ids.iter().filter(|id| is_storable(id)).collect();
    for chunk in chunks(&ids) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), statement, chunk.len()))
            .bind(scope.provider.to_string())
            .bind(scope.account.to_string())
            .bind(scope.mode.to_string());
        if let Some(outside) = outside {
            query = query.bind(outside.from_us).bind(outside.until_us);
        }
        for id in chunk {
            query = query.bind(id.as_str());
        }
        found.extend(query.fetch_all(&mut *connection).await.context("read stored records by id")?);
    }
    Ok(found)
}
