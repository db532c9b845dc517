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

/// Dead letters of a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDead {
    /// How many.
    pub events: i64,
    /// Why the first gave up.
    pub first_error: String,
}

/// What became a dead letter after this instant, Unix µs; `None`: nothing.
///
/// # Errors
/// When the store cannot be read.
pub async fn dead_since(store: &Store, since_us: i64) -> Result<Option<NewDead>> {
    let query = sqlx::query(include_str!("../../queries/store/inbox_dead_since.sql"));
    let row = query.bind(since_us).fetch_optional(store.pool()).await.context("look for dead letters")?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(NewDead { events: row.try_get("events")?, first_error: row.try_get("last_error")? }))
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
