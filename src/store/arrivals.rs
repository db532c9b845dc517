//! Deliveries come into the inbox: many in one statement, each event once.
//!
//! The one thing to get right: bytes that were stored are never replaced. A second delivery is counted;
//! other bytes under a known event id are kept beside it.

use super::Database;
use super::batch::{CHUNK_ROWS, repeat_values};
use super::ledger::Scopes;
use crate::record::EventKey;
use anyhow::{Context, Result};
use sqlx::{AnyConnection, Row};
use std::collections::BTreeMap;

/// One verified delivery of one event.
#[derive(Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The event's key.
    pub key: EventKey,
    /// The provider's event type.
    pub event_type: String,
    /// The bytes as received.
    pub body: Vec<u8>,
    /// Their SHA-256, lower-case hexadecimal.
    pub body_sha256: String,
    /// The signed headers as a JSON object; none that is itself a secret.
    pub headers: String,
    /// The URL that the delivery was signed for, where the scheme signs one; else empty.
    pub url: String,
    /// Which of the endpoint's secrets matched, from 1.
    pub secret_slot: i64,
    /// When it arrived, Unix µs.
    pub received_at_us: i64,
}

/// Bodies hold personal data, so they are not shown.
impl std::fmt::Debug for Arrival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arrival")
            .field("key", &self.key)
            .field("body_sha256", &self.body_sha256)
            .finish_non_exhaustive()
    }
}

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filed {
    /// The event's first delivery.
    New,
    /// The event was there with the same bytes.
    Duplicate,
    /// The event was there with other bytes; these are kept beside it and never applied.
    Conflicting,
}

/// Files deliveries, each in the order given. The caller commits.
///
/// # Errors
/// When the store cannot be written; the caller must roll back.
pub async fn file_arrivals(connection: &mut AnyConnection, arrivals: &[Arrival]) -> Result<Vec<Filed>> {
    // One statement may name a key only once, so deliveries of one event in a batch are counted first.
    let mut by_key: BTreeMap<&EventKey, Vec<usize>> = BTreeMap::new();
    for (index, arrival) in arrivals.iter().enumerate() {
        by_key.entry(&arrival.key).or_default().push(index);
    }
    let groups: Vec<Vec<usize>> = by_key.into_values().collect();
    let mut filed = vec![Filed::Duplicate; arrivals.len()];
    let mut conflicts: Vec<&Arrival> = Vec::new();
    for chunk in groups.chunks(CHUNK_ROWS) {
        let held = arrive(connection, arrivals, chunk).await?;
        for group in chunk {
            let first = &arrivals[group[0]];
            let Some((hash, received_at_us, deliveries)) = held.get(&first.key) else {
                anyhow::bail!("the event {} was not filed", first.key.event_id);
            };
            let is_new =
                *deliveries == i64::try_from(group.len())? && *received_at_us == first.received_at_us;
            for (place, index) in group.iter().enumerate() {
                filed[*index] = if arrivals[*index].body_sha256 != *hash {
                    conflicts.push(&arrivals[*index]);
                    Filed::Conflicting
                } else if is_new && place == 0 {
                    Filed::New
                } else {
                    Filed::Duplicate
                };
            }
        }
    }
    keep_conflicts(connection, &conflicts).await?;
    Ok(filed)
}

/// (hash, first receipt, deliveries) of each event of a chunk as it stands now.
type Held = BTreeMap<EventKey, (String, i64, i64)>;

async fn arrive(connection: &mut AnyConnection, arrivals: &[Arrival], groups: &[Vec<usize>]) -> Result<Held> {
    const SQL: &str = include_str!("../../queries/store/inbox_arrive.sql");
    let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, groups.len()));
    for group in groups {
        let arrival = &arrivals[group[0]];
        let latest_us = group.iter().map(|index| arrivals[*index].received_at_us).max().unwrap_or_default();
        let scope = &arrival.key.scope;
        query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode);
        query = query.bind(&*arrival.key.event_id).bind(&*arrival.event_type).bind(arrival.body.clone());
        query = query.bind(&*arrival.body_sha256).bind(arrival.received_at_us).bind(latest_us);
        query = query.bind(i64::try_from(group.len())?).bind(&*arrival.headers).bind(&*arrival.url);
        query = query.bind(arrival.secret_slot);
    }
    let rows = query.fetch_all(&mut *connection).await.context("file deliveries")?;
    let mut held = Held::new();
    let mut scopes = Scopes::default();
    for row in &rows {
        let key = EventKey { scope: scopes.of(row)?, event_id: row.try_get("event_id")? };
        let found = (row.try_get("body_sha256")?, row.try_get("received_at_us")?, row.try_get("deliveries")?);
        held.insert(key, found);
    }
    Ok(held)
}

async fn keep_conflicts(connection: &mut AnyConnection, conflicts: &[&Arrival]) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/inbox_conflict_insert.sql");
    let mut counted: BTreeMap<(&EventKey, &str), (&Arrival, i64)> = BTreeMap::new();
    for arrival in conflicts {
        counted.entry((&arrival.key, &arrival.body_sha256)).or_insert((arrival, 0)).1 += 1;
    }
    let counted: Vec<(&Arrival, i64)> = counted.into_values().collect();
    for chunk in counted.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for (arrival, deliveries) in chunk {
            let scope = &arrival.key.scope;
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode);
            query = query.bind(&*arrival.key.event_id).bind(&*arrival.body_sha256).bind(arrival.body.clone());
            query = query.bind(arrival.received_at_us).bind(*deliveries);
        }
        query.fetch_all(&mut *connection).await.context("keep other bytes of known events")?;
    }
    Ok(())
}
