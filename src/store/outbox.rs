//! Messages to the team's own URL: written with the effect, sent afterwards.
//!
//! The one thing to get right: a claim books the next attempt in its own commit, so that a message whose answer
//! was never saved is sent again, with the same key.

use super::Database;
use super::batch::{CHUNK_ROWS, repeat_values};
use crate::record::EffectKey;
use anyhow::{Context, Result};
use sqlx::{AnyConnection, Row};
use std::collections::BTreeMap;

/// A message that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// The receiver drops a second one with this key.
    pub idempotency_key: String,
    /// The effect that it tells of.
    pub key: EffectKey,
    /// The effect's object.
    pub object_id: String,
    /// What it is about.
    pub topic: String,
    /// JSON.
    pub body: Vec<u8>,
    /// Why it is not sent; empty where it is.
    pub suppressed_reason: String,
}

/// A message that is to be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueMessage {
    /// Its key.
    pub idempotency_key: String,
    /// JSON.
    pub body: Vec<u8>,
    /// Attempts, with this one.
    pub attempts: i64,
}

/// Writes messages in the transaction of their effects. One whose key is there already stays as it is.
///
/// # Errors
/// When the store cannot be written.
pub async fn insert(connection: &mut AnyConnection, messages: &[NewMessage], now_us: i64) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/outbox_insert.sql");
    let unique: BTreeMap<&str, &NewMessage> =
        messages.iter().rev().map(|message| (&*message.idempotency_key, message)).collect();
    let unique: Vec<&NewMessage> = unique.into_values().collect();
    for chunk in unique.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for message in chunk {
            let EffectKey { scope, key } = &message.key;
            query = query.bind(&*message.idempotency_key);
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode);
            query = query.bind(&*message.object_id).bind(&*message.topic).bind(&*message.body).bind(now_us);
            query = query.bind(&*message.suppressed_reason).bind(&**key);
        }
        query.fetch_all(&mut *connection).await.context("write messages")?;
    }
    Ok(())
}

/// Claims up to `count` due messages. The caller commits at once, before any is sent. `waits_us` are the waits
/// after 1, 2, 3, 4 and more attempts.
///
/// # Errors
/// When the store cannot be written.
pub async fn claim(
    connection: &mut AnyConnection,
    next_attempts_us: &super::work::NextAttempts,
    now_us: i64,
    count: i64,
) -> Result<Vec<DueMessage>> {
    let mut query = sqlx::query(include_str!("../../queries/store/outbox_claim.sql"));
    for next_us in next_attempts_us {
        query = query.bind(*next_us);
    }
    let rows = query.bind(now_us).bind(count).fetch_all(&mut *connection).await;
    let mut due = Vec::new();
    for row in &rows.context("claim due messages")? {
        due.push(DueMessage {
            idempotency_key: row.try_get("idempotency_key")?,
            body: row.try_get("body")?,
            attempts: row.try_get("attempts")?,
        });
    }
    due.sort_by(|a, b| a.idempotency_key.cmp(&b.idempotency_key));
    Ok(due)
}

/// Makes the messages due that are said to be due so much later than now by the database's own clock, µs; returns how
/// many.
///
/// # Errors
/// When the store cannot be written.
pub async fn bring_back(connection: &mut AnyConnection, longest_us: i64) -> Result<u64> {
    let now_us = super::lease::database_now_us(connection).await?;
    let latest_us = now_us.saturating_add(longest_us);
    let query = sqlx::query(include_str!("../../queries/store/outbox_too_far.sql")).bind(latest_us);
    let rows = query.fetch_all(&mut *connection).await.context("look for messages that wait too long")?;
    Ok(rows.len() as u64)
}

/// Notes how a message ended: sent, to be tried again, or dead.
///
/// # Errors
/// When the store cannot be written.
pub async fn settle(
    connection: &mut AnyConnection,
    idempotency_key: &str,
    sent_at_us: Option<i64>,
    dead_at_us: Option<i64>,
    error: &str,
) -> Result<()> {
    let query = sqlx::query(include_str!("../../queries/store/outbox_settle.sql"));
    let query = query.bind(sent_at_us).bind(dead_at_us).bind(error).bind(idempotency_key);
    query.fetch_all(&mut *connection).await.context("note what became of a message")?;
    Ok(())
}
