//! Other bytes that came under a known event's id. They are kept beside the first and never applied.

use super::Store;
use super::operating::of_event;
use crate::record::EventKey;
use anyhow::{Context, Result};
use sqlx::Row;

/// Another body that came under an event's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Its hash.
    pub body_sha256: String,
    /// How often it came.
    pub deliveries: i64,
    /// When it first came, Unix µs.
    pub received_at_us: i64,
    /// Its length; 0 where it was dropped.
    pub bytes: i64,
}

/// Other bodies that came under an event's id, the first `count` of them, and how many there are in all.
///
/// # Errors
/// When the store cannot be read.
pub async fn conflicts(store: &Store, key: &EventKey, count: i64) -> Result<(Vec<Conflict>, i64)> {
    let query = of_event(include_str!("../../queries/store/inbox_conflicts.sql"), key).bind(count);
    let rows = query.fetch_all(store.pool()).await.context("look at other bytes")?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push(Conflict {
            body_sha256: row.try_get("body_sha256")?,
            deliveries: row.try_get("deliveries")?,
            received_at_us: row.try_get("received_at_us")?,
            bytes: row.try_get("bytes")?,
        });
    }
    let in_all = rows.first().map(|row| row.try_get("bodies")).transpose()?;
    Ok((found, in_all.unwrap_or(0)))
}

/// What a name of other bytes stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// These bytes; `None` where they were dropped after their retention.
    One(Option<Vec<u8>>),
    /// The beginning of several hashes.
    Several,
    /// Of none.
    Nothing,
}

/// The other bytes under an event's id whose hash begins so.
///
/// # Errors
/// When the store cannot be read.
pub async fn body(store: &Store, key: &EventKey, hash_start: &str) -> Result<Named> {
    let query = of_event(include_str!("../../queries/store/inbox_conflict_body.sql"), key);
    let query = query.bind(hash_start.to_owned()).bind(hash_start.to_owned());
    let rows = query.fetch_all(store.pool()).await.context("read other bytes")?;
    Ok(match &rows[..] {
        [] => Named::Nothing,
        [row] => Named::One(Some(row.try_get::<Vec<u8>, _>("body")?).filter(|body| !body.is_empty())),
        _ => Named::Several,
    })
}
