//! How recon's own inbox is doing.

use super::Store;
use crate::record::{InboxStatus, Scope};
use anyhow::{Context, Result};
use sqlx::{AnyConnection, Row};
use std::collections::BTreeMap;

/// The inbox of one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeHealth {
    /// Scope.
    pub scope: Scope,
    /// Events by status.
    pub events: BTreeMap<InboxStatus, u64>,
    /// Deliveries beyond the first of each event.
    pub duplicates: u64,
    /// Events that wait and were received before the asked instant.
    pub waiting_above_age: u64,
    /// First receipt of the oldest waiting event, Unix µs.
    pub oldest_waiting_us: Option<i64>,
}

/// Health by scope; an event that waits longer than since `old_before_us` (Unix µs) counts as old.
///
/// # Errors
/// When the store cannot be read.
pub async fn inbox_health(store: &Store, old_before_us: i64) -> Result<Vec<ScopeHealth>> {
    let rows = sqlx::query(include_str!("../../queries/store/inbox_health.sql"))
        .bind(old_before_us)
        .fetch_all(store.pool())
        .await
        .context("read the health of the inbox")?;
    let mut by_scope: BTreeMap<Scope, ScopeHealth> = BTreeMap::new();
    for row in rows {
        let text = |name: &str| row.try_get::<String, _>(name);
        let count = |name: &str| row.try_get::<i64, _>(name).map(|value| u64::try_from(value).unwrap_or(0));
        let scope = Scope::new(&text("provider")?, &text("account")?, &text("mode")?);
        let Ok(status) = text("status")?.parse::<InboxStatus>() else { continue };
        let health = by_scope.entry(scope.clone()).or_insert_with(|| ScopeHealth {
            scope,
            events: BTreeMap::new(),
            duplicates: 0,
            waiting_above_age: 0,
            oldest_waiting_us: None,
        });
        health.events.insert(status, count("events")?);
        health.duplicates += count("duplicates")?;
        if matches!(status, InboxStatus::Received | InboxStatus::Parked) {
            health.waiting_above_age += count("above_age")?;
            let oldest_us = row.try_get::<i64, _>("oldest_us")?;
            health.oldest_waiting_us =
                Some(health.oldest_waiting_us.map_or(oldest_us, |known| known.min(oldest_us)));
        }
    }
    Ok(by_scope.into_values().collect())
}

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
