//! The inbox as the worker sees it: claiming what is due, and ending it in the transaction of its effect.
//!
//! The one thing to get right: a claim books the event's next attempt in its own commit, so that an error, a
//! crash and a kill all take one path: the event is simply due again.

use super::Database;
use super::batch::{chunks, repeat_values};
use super::ledger::Scopes;
use crate::record::{EffectKey, EventKey, InboxStatus};
use anyhow::{Context, Result, anyhow};
use sqlx::{AnyConnection, Row};
use std::collections::{BTreeMap, BTreeSet};

/// An event that a worker has claimed.
#[derive(Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Its key.
    pub key: EventKey,
    /// The provider's type.
    pub event_type: String,
    /// The bytes as received; empty where they were dropped after their retention.
    pub body: Vec<u8>,
    /// First receipt, Unix µs.
    pub received_at_us: i64,
    /// Its first attempt since it was received, retried or replayed, Unix µs.
    pub tried_since_us: i64,
    /// Attempts, with this one.
    pub attempts: i64,
    /// Whether it was parked.
    pub is_parked: bool,
    /// Why a person or a run had it processed again; empty for what was delivered. What it does then sends nothing.
    pub replayed_for: String,
}

/// Bodies hold personal data, so they are not shown.
impl std::fmt::Debug for Claimed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claimed")
            .field("key", &self.key)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

/// When an event is due again after 1, 2, 3, 4 and more attempts, Unix µs.
pub type NextAttempts = [i64; 5];

/// Claims up to `count` due events, oldest due first. The caller commits at once, before any work.
///
/// # Errors
/// When the store cannot be written.
pub async fn claim(
    connection: &mut AnyConnection,
    next_attempts_us: &NextAttempts,
    now_us: i64,
    count: i64,
) -> Result<Vec<Claimed>> {
    const SQL: &str = include_str!("../../queries/store/inbox_claim.sql");
    const POSTGRES: &str = include_str!("../../queries/postgres/inbox_claim.sql");
    let mut query = sqlx::query(match Database::of(connection) {
        Database::Sqlite => SQL,
        Database::Postgres => POSTGRES,
    });
    for next_us in next_attempts_us {
        query = query.bind(*next_us);
    }
    let rows =
        query.bind(now_us).bind(count).fetch_all(&mut *connection).await.context("claim due events")?;
    let mut claimed = Vec::with_capacity(rows.len());
    let mut scopes = Scopes::default();
    for row in &rows {
        let status: String = row.try_get("status")?;
        let status: InboxStatus = status.parse().map_err(|()| anyhow!("unknown inbox status `{status}`"))?;
        claimed.push(Claimed {
            key: EventKey { scope: scopes.of(row)?, event_id: row.try_get("event_id")? },
            event_type: row.try_get("event_type")?,
            body: row.try_get::<Option<Vec<u8>>, _>("body")?.unwrap_or_default(),
            received_at_us: row.try_get("received_at_us")?,
            tried_since_us: row.try_get("tried_since_us")?,
            attempts: row.try_get("attempts")?,
            is_parked: status == InboxStatus::Parked,
            replayed_for: row.try_get("reason")?,
        });
    }
    // Neither database promises an order of returned rows.
    claimed.sort_by(|a, b| (a.received_at_us, &a.key).cmp(&(b.received_at_us, &b.key)));
    Ok(claimed)
}

/// Of these events, those that have not ended yet, with the attempts that are counted.
///
/// # Errors
/// When the store cannot be read.
pub async fn open(connection: &mut AnyConnection, keys: &[&EventKey]) -> Result<BTreeMap<EventKey, i64>> {
    const SQL: &str = include_str!("../../queries/store/inbox_open.sql");
    let mut open = BTreeMap::new();
    let mut scopes = Scopes::default();
    for chunk in chunks(keys) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for EventKey { scope, event_id } in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**event_id);
        }
        let rows = query.fetch_all(&mut *connection).await.context("look at claimed events")?;
        for row in &rows {
            let key = EventKey { scope: scopes.of(row)?, event_id: row.try_get("event_id")? };
            open.insert(key, row.try_get("attempts")?);
        }
    }
    Ok(open)
}

/// How an event ends, or is put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending<'a> {
    /// `applied`, `superseded`, `ignored`, `dead` or `parked`.
    pub status: InboxStatus,
    /// Why, without personal data; empty where there is nothing to say.
    pub error: &'a str,
    /// The effect key (`credit:ch_1`) that it waits for while it is parked, else empty.
    pub parked_for: &'a str,
    /// When it is due again while it is parked, Unix µs; else 0.
    pub due_us: i64,
}

/// Ends events in the transaction of what they did. One that ended meanwhile stays as it is.
///
/// # Errors
/// When the store cannot be written.
pub async fn finish(
    connection: &mut AnyConnection,
    keys: &[&EventKey],
    ending: Ending<'_>,
    now_us: i64,
) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/inbox_finish.sql");
    let completed_us = (ending.status != InboxStatus::Parked).then_some(now_us);
    for chunk in chunks(keys) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()))
            .bind(ending.status.as_str());
        query = query.bind(completed_us).bind(ending.error).bind(ending.parked_for).bind(ending.due_us);
        for EventKey { scope, event_id } in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**event_id);
        }
        query.fetch_all(&mut *connection).await.context("end events")?;
    }
    Ok(())
}

/// Notes why an attempt failed; the claim has booked the next one.
///
/// # Errors
/// When the store cannot be written.
pub async fn fail(connection: &mut AnyConnection, keys: &[&EventKey], error: &str) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/inbox_fail.sql");
    for chunk in chunks(keys) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len())).bind(error);
        for EventKey { scope, event_id } in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**event_id);
        }
        query.fetch_all(&mut *connection).await.context("note failed attempts")?;
    }
    Ok(())
}

/// How long an event waits that is not at fault, µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause {
    /// At least.
    pub min_us: i64,
    /// At most.
    pub max_us: i64,
}

/// Notes what events wait for that is not their fault: no attempt is used up.
///
/// # Errors
/// When the store cannot be written.
pub async fn wait(
    connection: &mut AnyConnection,
    keys: &[&EventKey],
    error: &str,
    now_us: i64,
    pause: Pause,
) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/inbox_wait.sql");
    for chunk in chunks(keys) {
        let query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        let since = |pause_us: i64| now_us.saturating_sub(pause_us.saturating_mul(4));
        let due = |pause_us: i64| now_us.saturating_add(pause_us);
        let mut query = query.bind(error).bind(since(pause.min_us)).bind(due(pause.min_us));
        query = query.bind(since(pause.max_us)).bind(due(pause.max_us)).bind(now_us.saturating_mul(5));
        for EventKey { scope, event_id } in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**event_id);
        }
        query.fetch_all(&mut *connection).await.context("note what events wait for")?;
    }
    Ok(())
}

/// Makes the events due that are said to be due so much later than now by the database's own clock, µs; returns how
/// many.
///
/// # Errors
/// When the store cannot be written.
pub async fn bring_back(connection: &mut AnyConnection, longest_us: i64) -> Result<u64> {
    let now_us = super::lease::database_now_us(connection).await?;
    let latest_us = now_us.saturating_add(longest_us);
    let query = sqlx::query(include_str!("../../queries/store/inbox_too_far.sql")).bind(latest_us);
    let rows = query.fetch_all(&mut *connection).await.context("look for events that wait too long")?;
    Ok(rows.len() as u64)
}

/// Makes the events due that are parked for any of these effects, in the transaction in which they land.
///
/// # Errors
/// When the store cannot be written.
pub async fn wake(connection: &mut AnyConnection, landed: &[&EffectKey], now_us: i64) -> Result<u64> {
    const SQL: &str = include_str!("../../queries/store/inbox_wake.sql");
    let landed = waited_for(connection, landed).await?;
    let mut woken = 0;
    for chunk in chunks(&landed) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len())).bind(now_us);
        for EffectKey { scope, key } in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**key);
        }
        woken += query.fetch_all(&mut *connection).await.context("wake parked events")?.len() as u64;
    }
    Ok(woken)
}

/// Of these effects, those that a parked event may wait for. Hardly any effect is waited for: where few events are
/// parked, looking at them is cheaper than looking each effect up.
async fn waited_for<'k>(
    connection: &mut AnyConnection,
    landed: &[&'k EffectKey],
) -> Result<Vec<&'k EffectKey>> {
    const FEW: i64 = 2_000;
    if landed.is_empty() {
        return Ok(Vec::new());
    }
    let query = sqlx::query(include_str!("../../queries/store/inbox_waited_for.sql")).bind(FEW);
    let rows = query.fetch_all(&mut *connection).await.context("look at parked events")?;
    if i64::try_from(rows.len()).is_ok_and(|count| count >= FEW) {
        return Ok(landed.to_vec());
    }
    let mut waited = BTreeSet::new();
    let mut scopes = Scopes::default();
    for row in &rows {
        waited.insert(EffectKey { scope: scopes.of(row)?, key: row.try_get("parked_for")? });
    }
    Ok(landed.iter().copied().filter(|key| waited.contains(*key)).collect())
}
