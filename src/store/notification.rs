//! When the team was last told of what, for all processes of a store together.
//!
//! The one thing to get right: whoever tells takes the telling on before and settles it after, so that neither
//! several processes nor restarts repeat it, and a call that failed or was cut short is made again.

use super::Store;
use anyhow::{Context, Result};
use sqlx::Row;

/// When this was last told, Unix µs; 0: never.
///
/// # Errors
/// When the store cannot be read.
pub async fn told_at(store: &Store, kind: &'static str) -> Result<i64> {
    let query = sqlx::query(include_str!("../../queries/store/notification_told.sql"));
    let row = query.bind(kind).fetch_optional(store.pool()).await.context("read what was told")?;
    Ok(row.map(|row| row.try_get("told_at_us")).transpose()?.unwrap_or(0))
}

/// When a telling is free to be taken on.
#[derive(Clone, Copy, Debug)]
pub struct Free {
    /// It was last told no later than this, Unix µs.
    pub told_before_us: i64,
    /// Nobody is at it now, Unix µs.
    pub now_us: i64,
    /// What was told later than this was told by a clock that was ahead, and counts for nothing, Unix µs.
    pub told_by_wrong_clock_us: i64,
    /// As that, of who holds it.
    pub held_by_wrong_clock_us: i64,
}

/// Takes the telling on until `held_until_us`, where it is free. Answers whether it is ours.
///
/// # Errors
/// When the store cannot be written.
pub async fn claim(store: &Store, kind: &'static str, free: Free, held_until_us: i64) -> Result<bool> {
    const CONTEXT: &str = "take a notification on";
    let mut tx = store.begin().await?;
    let query = sqlx::query(include_str!("../../queries/store/notification_claim.sql"));
    let query =
        query.bind(kind).bind(held_until_us).bind(free.told_before_us).bind(free.told_by_wrong_clock_us);
    let query = query.bind(free.now_us).bind(free.held_by_wrong_clock_us);
    let rows = query.fetch_all(&mut *tx).await.context(CONTEXT)?;
    tx.commit().await.context(CONTEXT)?;
    Ok(!rows.is_empty())
}

/// Ends what [`claim`] took on: told at that time, or, with `None`, due again.
///
/// # Errors
/// When the store cannot be written.
pub async fn settle(
    store: &Store,
    kind: &'static str,
    told_at_us: Option<i64>,
    held_until_us: i64,
) -> Result<()> {
    const CONTEXT: &str = "note what was told";
    let mut tx = store.begin().await?;
    let query = sqlx::query(include_str!("../../queries/store/notification_settle.sql"));
    let query = query.bind(told_at_us).bind(told_at_us).bind(kind).bind(held_until_us);
    query.fetch_all(&mut *tx).await.context(CONTEXT)?;
    tx.commit().await.context(CONTEXT)
}
