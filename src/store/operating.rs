//! What a person looks at and does in the inbox. Reasons are kept; nothing here touches business state.

use super::batch::{CHUNK_ROWS, repeat_values};
use super::ledger::Scopes;
use super::{Database, Store};
use crate::record::{EventKey, Scope};
use anyhow::{Context, Result};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use std::collections::BTreeMap;

/// An event of the inbox without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filed {
    /// Its key.
    pub key: EventKey,
    /// The provider's type.
    pub event_type: String,
    /// Status.
    pub status: String,
    /// First and last delivery, Unix µs.
    pub received_at_us: i64,
    /// The last one, Unix µs.
    pub last_delivery_at_us: i64,
    /// Deliveries.
    pub deliveries: i64,
    /// Attempts to apply it.
    pub attempts: i64,
    /// When it is due, Unix µs.
    pub next_attempt_at_us: i64,
    /// When it ended, Unix µs.
    pub completed_at_us: Option<i64>,
    /// Why its last attempt failed, or it ended so.
    pub last_error: String,
    /// Why it was filed or replayed by somebody.
    pub reason: String,
    /// The effect that it waits for.
    pub parked_for: String,
    /// Hash of its bytes.
    pub body_sha256: String,
    /// Whether its bytes are still kept.
    pub has_body: bool,
}

impl Filed {
    /// What it is for a replay.
    #[must_use]
    pub fn standing(&self) -> Standing {
        Standing::of(&self.status, &self.last_error, self.has_body)
    }
}

/// What an event is for a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It came to an end, and can be replayed.
    Ended,
    /// A person said that it is not to be applied.
    Discarded,
    /// Its bytes were dropped.
    Pruned,
    /// It was never applied: its messages are still to be sent, which a replay would not.
    Dead,
    /// It has not ended.
    Waits,
}

impl Standing {
    fn of(status: &str, last_error: &str, has_body: bool) -> Self {
        match status {
            "dead" => Self::Dead,
            "received" | "parked" => Self::Waits,
            _ if !has_body => Self::Pruned,
            "ignored" if last_error == "discarded" => Self::Discarded,
            _ => Self::Ended,
        }
    }
}

/// What a person may do to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Try it again.
    Retry,
    /// Never apply it.
    Discard,
    /// Apply it once more.
    Replay,
    /// Send it to a handler once more.
    Redeliver,
    /// Drop its raw body.
    Prune,
}

impl Action {
    /// The word in `inbox_action`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Discard => "discard",
            Self::Replay => "replay",
            Self::Redeliver => "redeliver",
            Self::Prune => "prune",
        }
    }
}

/// Who does something, why, and when (Unix µs).
#[derive(Clone, Copy, Debug)]
pub struct Act<'a> {
    /// What.
    pub action: Action,
    /// Why.
    pub reason: &'a str,
    /// Who.
    pub actor: &'a str,
    /// When, Unix µs.
    pub at_us: i64,
}

/// A kept act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What.
    pub action: String,
    /// Why.
    pub reason: String,
    /// Who.
    pub actor: String,
    /// When, Unix µs.
    pub at_us: i64,
}

impl Kept {
    pub(super) fn of(row: &AnyRow) -> Result<Self> {
        Ok(Self {
            action: row.try_get("action")?,
            reason: row.try_get("reason")?,
            actor: row.try_get("actor")?,
            at_us: row.try_get("at_us")?,
        })
    }
}

/// Events, last received first; of one status, or all where it is empty.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(store: &Store, status: &str, count: i64) -> Result<Vec<Filed>> {
    let query = sqlx::query(include_str!("../../queries/store/inbox_list.sql"));
    let rows = query.bind(status.to_owned()).bind(count).fetch_all(store.pool()).await;
    filed(&rows.context("list events")?)
}

/// Events with this id, one for each scope that has it.
///
/// # Errors
/// When the store cannot be read.
pub async fn by_id(store: &Store, event_id: &str) -> Result<Vec<Filed>> {
    let query = sqlx::query(include_str!("../../queries/store/inbox_by_id.sql"));
    filed(&query.bind(event_id.to_owned()).fetch_all(store.pool()).await.context("look an event up")?)
}

/// Events that have ended and were received in this time, Unix µs, oldest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn between(
    connection: &mut AnyConnection,
    from_us: i64,
    until_us: i64,
) -> Result<Vec<(EventKey, Standing)>> {
    let query = sqlx::query(include_str!("../../queries/store/inbox_between.sql")).bind(from_us);
    let rows = query.bind(until_us).fetch_all(connection).await.context("list events of a time")?;
    let mut found = Vec::with_capacity(rows.len());
    for (key, row) in keys(&rows)?.into_iter().zip(&rows) {
        let has_body = row.try_get::<i64, _>("has_body")? == 1;
        found.push((key, Standing::of(row.try_get("status")?, row.try_get("last_error")?, has_body)));
    }
    Ok(found)
}

/// What is kept of an event as received. It has no `Debug`: a body may hold personal data.
pub struct Raw {
    /// Its bytes; `None` where they were dropped.
    pub body: Option<Vec<u8>>,
    /// Headers by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The URL that was called; empty where it is not known.
    pub url: String,
}

/// An event as received.
///
/// # Errors
/// When the store cannot be read, or has no such event.
pub async fn raw(store: &Store, key: &EventKey) -> Result<Raw> {
    let query = of_event(include_str!("../../queries/store/inbox_raw.sql"), key);
    let row = query.fetch_one(store.pool()).await.context("read an event's bytes")?;
    let headers: Option<String> = row.try_get("headers")?;
    Ok(Raw {
        body: row.try_get("body")?,
        headers: headers.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        url: row.try_get::<Option<String>, _>("url")?.unwrap_or_default(),
    })
}

/// What persons did to an event.
///
/// # Errors
/// When the store cannot be read.
pub async fn actions(store: &Store, key: &EventKey) -> Result<Vec<Kept>> {
    let query = of_event(include_str!("../../queries/store/inbox_actions.sql"), key);
    let rows = query.fetch_all(store.pool()).await.context("read what was done to an event")?;
    rows.iter().map(Kept::of).collect()
}

/// Does it to those events for which it makes sense, and keeps why; answers these. The caller commits.
///
/// # Errors
/// When the store cannot be written.
pub async fn act(connection: &mut AnyConnection, events: &[EventKey], act: Act<'_>) -> Result<Vec<EventKey>> {
    let sql = match act.action {
        Action::Retry => Some(include_str!("../../queries/store/inbox_retry.sql")),
        Action::Discard => Some(include_str!("../../queries/store/inbox_discard.sql")),
        Action::Replay => Some(include_str!("../../queries/store/inbox_replay.sql")),
        Action::Redeliver | Action::Prune => None,
    };
    let Some(sql) = sql else {
        keep(connection, events, act).await?;
        return Ok(events.to_vec());
    };
    let replayed = format!("replayed by {}: {}", act.actor, act.reason);
    let mut done = Vec::new();
    for chunk in events.chunks(CHUNK_ROWS) {
        let mut query =
            sqlx::query(repeat_values(Database::of(connection), sql, chunk.len())).bind(act.at_us);
        if act.action == Action::Replay {
            query = query.bind(&*replayed);
        }
        for EventKey { scope, event_id } in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**event_id);
        }
        done.extend(keys(&query.fetch_all(&mut *connection).await.context("change events")?)?);
    }
    done.sort();
    keep(connection, &done, act).await?;
    Ok(done)
}

async fn keep(connection: &mut AnyConnection, events: &[EventKey], act: Act<'_>) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/inbox_action_insert.sql");
    for chunk in events.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for EventKey { scope, event_id } in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**event_id);
            query = query.bind(act.action.as_str()).bind(act.reason).bind(act.actor).bind(act.at_us);
        }
        query.fetch_all(&mut *connection).await.context("keep what was done to events")?;
    }
    Ok(())
}

/// What pruning did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Events whose bodies were dropped.
    pub events: u64,
    /// Other bodies under known ids that were emptied.
    pub conflicts: u64,
    /// Older events that keep their bodies because they have not ended well.
    pub kept: i64,
}

/// Drops raw bodies received before this instant, Unix µs, in small transactions. Each keeps what it dropped as an
/// [`Action::Prune`] of its own microsecond, one row for each scope, of no event.
///
/// # Errors
/// When the store cannot be written. What was dropped stays dropped.
pub async fn prune(store: &Store, before_us: i64, act: Act<'_>) -> Result<Pruned> {
    const AT_A_TIME: i64 = 1_000;
    let mut pruned = Pruned::default();
    let mut act = act;
    loop {
        let mut tx = store.begin_write().await?;
        let query = sqlx::query(include_str!("../../queries/store/inbox_prune.sql"));
        let rows = query.bind(before_us).bind(AT_A_TIME).fetch_all(&mut *tx).await.context("drop bodies")?;
        keep_pruned(&mut tx, &rows, "bodies of events", act).await?;
        act.at_us += 1;
        tx.commit().await.context("drop bodies")?;
        pruned.events += rows.len() as u64;
        if rows.is_empty() {
            break;
        }
    }
    let mut tx = store.begin_write().await?;
    let query = sqlx::query(include_str!("../../queries/store/inbox_conflict_prune.sql"));
    let rows = query.bind(Vec::<u8>::new()).bind(before_us).fetch_all(&mut *tx).await;
    let rows = rows.context("empty other bytes")?;
    keep_pruned(&mut tx, &rows, "other bodies under known ids", act).await?;
    pruned.conflicts = rows.len() as u64;
    let query = sqlx::query(include_str!("../../queries/store/inbox_kept.sql"));
    let row = query.bind(before_us).fetch_one(&mut *tx).await.context("count kept bodies")?;
    pruned.kept = row.try_get("events")?;
    tx.commit().await.context("empty other bytes")?;
    Ok(pruned)
}

/// Keeps how many bodies were dropped, one row for each scope.
async fn keep_pruned(
    connection: &mut AnyConnection,
    rows: &[AnyRow],
    what: &str,
    act: Act<'_>,
) -> Result<()> {
    let mut scopes = Scopes::default();
    let mut dropped: BTreeMap<Scope, u64> = BTreeMap::new();
    for row in rows {
        *dropped.entry(scopes.of(row)?).or_default() += 1;
    }
    for (scope, count) in dropped {
        let reason = format!("{}: {count} {what}", act.reason);
        let of_no_event = EventKey { scope, event_id: String::new() };
        keep(connection, &[of_no_event], Act { reason: &reason, ..act }).await?;
    }
    Ok(())
}

pub(super) type Query<'q> = sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments>;

pub(super) fn of_event<'q>(sql: &'static str, key: &'q EventKey) -> Query<'q> {
    let scope = &key.scope;
    let query = sqlx::query(sql).bind(&*scope.provider).bind(&*scope.account);
    query.bind(&*scope.mode).bind(&*key.event_id)
}

fn keys(rows: &[AnyRow]) -> Result<Vec<EventKey>> {
    let mut scopes = Scopes::default();
    rows.iter()
        .map(|row| Ok(EventKey { scope: scopes.of(row)?, event_id: row.try_get("event_id")? }))
        .collect()
}

fn filed(rows: &[AnyRow]) -> Result<Vec<Filed>> {
    let mut scopes = Scopes::default();
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        found.push(Filed {
            key: EventKey { scope: scopes.of(row)?, event_id: row.try_get("event_id")? },
            event_type: row.try_get("event_type")?,
            status: row.try_get("status")?,
            received_at_us: row.try_get("received_at_us")?,
            last_delivery_at_us: row.try_get("last_delivery_at_us")?,
            deliveries: row.try_get("deliveries")?,
            attempts: row.try_get("attempts")?,
            next_attempt_at_us: row.try_get("next_attempt_at_us")?,
            completed_at_us: row.try_get("completed_at_us")?,
            last_error: row.try_get("last_error")?,
            reason: row.try_get("reason")?,
            parked_for: row.try_get("parked_for")?,
            body_sha256: row.try_get("body_sha256")?,
            has_body: row.try_get::<i64, _>("has_body")? == 1,
        });
    }
    Ok(found)
}
