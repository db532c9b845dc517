//! What waits in recon's own inbox, and what is counted of deliveries; asked every few seconds.

use super::Store;
use anyhow::{Context, Result};
use sqlx::{AnyConnection, Row};

/// What waits in the inbox of all scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Events that are to be applied.
    pub waiting: u64,
    /// Events that wait for another one.
    pub parked: u64,
    /// Of both, those received before the asked instant.
    pub above_age: u64,
    /// First receipt of the oldest of both, Unix µs.
    pub oldest_us: Option<i64>,
    /// Dead letters.
    pub dead: u64,
}

/// What waits; an event received before `old_before_us` (Unix µs) counts as old. Reads indexes only, so it
/// may be asked every few seconds.
///
/// # Errors
/// When the store cannot be read.
pub async fn backlog(store: &Store, old_before_us: i64) -> Result<Backlog> {
    const CONTEXT: &str = "read what waits in the inbox";
    let rows = sqlx::query(include_str!("../../queries/store/inbox_waiting.sql"))
        .bind(old_before_us)
        .fetch_all(store.pool())
        .await
        .context(CONTEXT)?;
    let dead = sqlx::query(include_str!("../../queries/store/inbox_dead.sql"));
    let dead = dead.fetch_one(store.pool()).await.context(CONTEXT)?;
    let mut backlog =
        Backlog { dead: u64::try_from(dead.try_get::<i64, _>("events")?)?, ..Backlog::default() };
    for row in &rows {
        let events = u64::try_from(row.try_get::<i64, _>("events")?)?;
        match row.try_get("status")? {
            "parked" => backlog.parked = events,
            _ => backlog.waiting = events,
        }
        backlog.above_age += u64::try_from(row.try_get::<i64, _>("above_age")?)?;
        let oldest_us = row.try_get::<i64, _>("oldest_us")?;
        backlog.oldest_us = Some(backlog.oldest_us.map_or(oldest_us, |known| known.min(oldest_us)));
    }
    Ok(backlog)
}

/// Dead letters that nobody was told of, taken to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// How many.
    pub events: usize,
    /// Why the first gave up.
    pub first_error: String,
}

/// Whether there is a dead letter that nobody was told of.
///
/// # Errors
/// When the store cannot be read.
pub async fn has_untold(store: &Store) -> Result<bool> {
    let query = sqlx::query(include_str!("../../queries/store/inbox_dead_untold.sql"));
    Ok(query.fetch_optional(store.pool()).await.context("look for dead letters")?.is_some())
}

/// Takes all dead letters that nobody was told of under a mark below 0; `None`: there are none. What dies later is not
/// among them, whatever the clocks say.
///
/// # Errors
/// When the store cannot be written.
pub async fn take_untold(store: &Store, mark: i64) -> Result<Option<Untold>> {
    const CONTEXT: &str = "take dead letters to be told";
    type First<'r> = (Option<i64>, i64, &'r str, &'r str);
    let mut tx = store.begin_write().await?;
    let query = sqlx::query(include_str!("../../queries/store/inbox_dead_telling.sql"));
    let rows = query.bind(mark).fetch_all(&mut *tx).await.context(CONTEXT)?;
    tx.commit().await.context(CONTEXT)?;
    let mut first: Option<First<'_>> = None;
    for row in &rows {
        let died = (row.try_get("completed_at_us")?, row.try_get("received_at_us")?);
        let row = (died.0, died.1, row.try_get("event_id")?, row.try_get("last_error")?);
        first = Some(first.map_or(row, |known| known.min(row)));
    }
    Ok(first.map(|(.., error)| Untold { events: rows.len(), first_error: error.to_owned() }))
}

/// Keeps that those taken under this mark were told at `told_at_us`, Unix µs.
///
/// # Errors
/// When the store cannot be written.
pub async fn keep_told(store: &Store, mark: i64, told_at_us: i64) -> Result<()> {
    const CONTEXT: &str = "keep which dead letters were told";
    let mut tx = store.begin_write().await?;
    let query = sqlx::query(include_str!("../../queries/store/inbox_dead_told.sql"));
    query.bind(told_at_us).bind(mark).fetch_all(&mut *tx).await.context(CONTEXT)?;
    tx.commit().await.context(CONTEXT)
}

/// Deliveries beyond the first of each event, in all.
///
/// # Errors
/// When the store cannot be read.
pub async fn repeated_deliveries(store: &Store) -> Result<u64> {
    let query = sqlx::query(include_str!("../../queries/store/inbox_repeated.sql"));
    let row = query.fetch_one(store.pool()).await.context("count repeated deliveries")?;
    Ok(u64::try_from(row.try_get::<i64, _>("duplicates")?)?)
}

/// Adds to the count of refused deliveries of a day. The caller commits.
///
/// # Errors
/// When the store cannot be written.
pub async fn add_refused(
    connection: &mut AnyConnection,
    provider: &str,
    reason: &str,
    day_us: i64,
    deliveries: u64,
) -> Result<()> {
    sqlx::query(include_str!("../../queries/store/refused_delivery_add.sql"))
        .bind(provider)
        .bind(reason)
        .bind(day_us)
        .bind(i64::try_from(deliveries)?)
        .fetch_one(connection)
        .await
        .context("count refused deliveries")?;
    Ok(())
}
