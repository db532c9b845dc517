//! How recon's own inbox is doing.

use super::Store;
use crate::record::{InboxStatus, Scope};
use anyhow::{Context, Result};
use sqlx::Row;
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
