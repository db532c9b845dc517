//! How recon's own inbox is doing, for the report of a run: what was received in its window, and what stands there
//! now, whenever it was received.

use super::Store;
use super::ledger::Scopes;
use crate::record::{InboxStatus, Scope, Window};
use anyhow::{Context, Result};
use sqlx::Row;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;

const DAY_US: i64 = 86_400_000_000;

/// The inbox of one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeHealth {
    /// Events by status: those that ended, of the window by first receipt; `received`, `parked` and `dead`, all.
    pub events: BTreeMap<InboxStatus, u64>,
    /// Deliveries of the same bytes beyond the first of each event of the window.
    pub duplicates: u64,
    /// Deliveries of other bytes under a known event's id, in the window.
    pub conflicting: u64,
    /// Events that wait and were received before the asked instant.
    pub waiting_above_age: u64,
    /// First receipt of the oldest waiting event, Unix µs.
    pub oldest_waiting_us: Option<i64>,
    /// From receipt to the end, of the window's events that ended by themselves.
    pub completion: Option<Completion>,
}

/// How long events took from their receipt to their end, ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Mean.
    pub mean_ms: u64,
    /// Of a hundred, 99 took no longer.
    pub p99_ms: u64,
    /// The longest.
    pub slowest_ms: u64,
}

/// Health by scope; an event that waits since before `old_before_us` (Unix µs) counts as old.
///
/// # Errors
/// When the store cannot be read.
pub async fn inbox_health(
    store: &Store,
    window: Window,
    old_before_us: i64,
) -> Result<BTreeMap<Scope, ScopeHealth>> {
    let mut by_scope: BTreeMap<Scope, ScopeHealth> = BTreeMap::new();
    let mut scopes = Scopes::default();
    for row in of_window(store, include_str!("../../queries/store/inbox_of_window.sql"), window).await? {
        let health = by_scope.entry(scopes.of(&row)?).or_default();
        health.duplicates += count(&row, "duplicates")?;
        if let Some(status) = status(&row)?.filter(|status| !stands(*status)) {
            health.events.insert(status, count(&row, "events")?);
        }
    }
    let standing = sqlx::query(include_str!("../../queries/store/inbox_standing.sql"));
    for row in standing.bind(old_before_us).fetch_all(store.pool()).await.context(CONTEXT)? {
        let Some(status) = status(&row)? else { continue };
        let health = by_scope.entry(scopes.of(&row)?).or_default();
        health.events.insert(status, count(&row, "events")?);
        if status != InboxStatus::Dead {
            health.waiting_above_age += count(&row, "above_age")?;
            let oldest_us: i64 = row.try_get("oldest_us")?;
            let known_us = health.oldest_waiting_us.unwrap_or(i64::MAX);
            health.oldest_waiting_us = Some(oldest_us.min(known_us));
        }
    }
    let conflicts = include_str!("../../queries/store/inbox_conflicts_of_window.sql");
    for row in of_window(store, conflicts, window).await? {
        let (conflicting, of_events) = (count(&row, "deliveries")?, count(&row, "of_events")?);
        if conflicting + of_events > 0 {
            let health = by_scope.entry(scopes.of(&row)?).or_default();
            health.conflicting = conflicting;
            health.duplicates = health.duplicates.saturating_sub(of_events);
        }
    }
    for row in of_window(store, include_str!("../../queries/store/inbox_completion.sql"), window).await? {
        by_scope.entry(scopes.of(&row)?).or_default().completion = Some(Completion {
            mean_ms: count(&row, "mean_ms")?,
            p99_ms: count(&row, "p99_ms")?,
            slowest_ms: count(&row, "slowest_ms")?,
        });
    }
    Ok(by_scope)
}

/// Deliveries refused on the UTC days that a window touches, by provider: who sent them is not known.
///
/// # Errors
/// When the store cannot be read.
pub async fn refused(store: &Store, window: Window) -> Result<BTreeMap<String, u64>> {
    let first_day_us = window.from_us.saturating_sub(window.from_us.rem_euclid(DAY_US));
    let days = Window { from_us: first_day_us, ..window };
    let rows = of_window(store, include_str!("../../queries/store/refused_of_window.sql"), days).await?;
    rows.iter().map(|row| Ok((row.try_get("provider")?, count(row, "deliveries")?))).collect()
}

const CONTEXT: &str = "read the health of the inbox";

/// Whether events of a status stand there until somebody or something moves them.
const fn stands(status: InboxStatus) -> bool {
    matches!(status, InboxStatus::Received | InboxStatus::Parked | InboxStatus::Dead)
}

async fn of_window(store: &Store, sql: &'static str, window: Window) -> Result<Vec<AnyRow>> {
    let query = sqlx::query(sql).bind(window.from_us).bind(window.until_us);
    query.fetch_all(store.pool()).await.context(CONTEXT)
}

fn status(row: &AnyRow) -> Result<Option<InboxStatus>> {
    Ok(row.try_get::<&str, _>("status")?.parse().ok())
}

fn count(row: &AnyRow, name: &str) -> Result<u64> {
    Ok(u64::try_from(row.try_get::<i64, _>(name)?).unwrap_or(0))
}
