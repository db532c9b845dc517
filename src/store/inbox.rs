//! The inbox, as far as replays touch it.

use super::Database;
use super::batch::{CHUNK_ROWS, repeat_values};
use super::ledger::Scopes;
use crate::record::{EventKey, sha256_hex};
use anyhow::{Context, Result};
use serde::Deserialize;
use sqlx::{AnyConnection, Row};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// An event as the provider lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEvent {
    /// Creation at the provider, Unix µs.
    pub created_us: i64,
    /// Its type.
    pub event_type: String,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// The events among `keys` that the inbox holds.
///
/// # Errors
/// When the store cannot be read.
pub async fn known(connection: &mut AnyConnection, keys: &[&EventKey]) -> Result<BTreeSet<EventKey>> {
    const SQL: &str = include_str!("../../queries/store/inbox_known.sql");
    let mut known = BTreeSet::new();
    let mut scopes = Scopes::default();
    for chunk in keys.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for EventKey { scope, event_id } in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**event_id);
        }
        let rows = query.fetch_all(&mut *connection).await.context("look events up in the inbox")?;
        for row in &rows {
            known.insert(EventKey { scope: scopes.of(row)?, event_id: row.try_get("event_id")? });
        }
    }
    Ok(known)
}

/// The events among `keys` that a run has read from the provider. One whose bytes do not say a type
/// is left out: it cannot be filed.
///
/// # Errors
/// When the store cannot be read.
pub async fn listed(
    connection: &mut AnyConnection,
    keys: &[&EventKey],
) -> Result<BTreeMap<EventKey, ListedEvent>> {
    const SQL: &str = include_str!("../../queries/store/provider_events.sql");
    let mut listed = BTreeMap::new();
    let mut scopes = Scopes::default();
    for chunk in keys.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for EventKey { scope, event_id } in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode);
            query = query.bind("events").bind(&**event_id);
        }
        let rows = query.fetch_all(&mut *connection).await.context("read the provider's events")?;
        for row in &rows {
            let body: &[u8] = row.try_get("body")?;
            let Some(event_type) = event_type(body) else { continue };
            let key = EventKey { scope: scopes.of(row)?, event_id: row.try_get("record_id")? };
            let created_us = row.try_get("created_us")?;
            listed.insert(key, ListedEvent { created_us, event_type, body: body.to_vec() });
        }
    }
    Ok(listed)
}

/// An event that a correction files, as if it had been delivered.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    /// Its key.
    pub key: &'a EventKey,
    /// What the provider lists.
    pub event: &'a ListedEvent,
    /// `applied` where its effect is booked in the same transaction, else `received`.
    pub status: &'static str,
    /// Why it is filed.
    pub reason: &'a str,
}

/// Files events that were never delivered. Their receipt time is their own time, so that they stand
/// in the period they belong to; `deliveries` stays 0.
///
/// # Errors
/// When the store cannot be written.
pub async fn insert_replays(
    connection: &mut AnyConnection,
    replays: &[Replay<'_>],
    now_us: i64,
) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/inbox_replay_insert.sql");
    for chunk in replays.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for Replay { key, event, status, reason } in chunk {
            let scope = &key.scope;
            query =
                query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&*key.event_id);
            query = query.bind(&*event.event_type).bind(&*event.body).bind(sha256_hex(&event.body));
            query = query.bind(event.created_us).bind(now_us).bind(*status).bind(*reason);
        }
        query.fetch_all(&mut *connection).await.context("file replayed events")?;
    }
    Ok(())
}

/// Marks events of the inbox as applied.
///
/// # Errors
/// When the store cannot be written.
pub async fn mark_applied(connection: &mut AnyConnection, keys: &[&EventKey], reason: &str) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/inbox_mark_applied.sql");
    for chunk in keys.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len())).bind(reason);
        for EventKey { scope, event_id } in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**event_id);
        }
        query.fetch_all(&mut *connection).await.context("mark events as applied")?;
    }
    Ok(())
}

fn event_type(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, rename = "type")]
        event_type: Cow<'a, str>,
    }
    let typed: Typed = serde_json::from_slice(body).ok()?;
    Some(typed.event_type.into_owned())
}
