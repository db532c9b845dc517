//! What a person looks at and does in the outbox. Bodies are for the receiver alone: nothing here reads one.

use super::batch::{CHUNK_ROWS, repeat_values};
use super::operating::Kept;
use super::{Database, Store};
use anyhow::{Context, Result};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// It is to be sent.
    Waiting,
    /// Its receiver took it.
    Sent,
    /// It is kept and never sent.
    Suppressed,
    /// Given up after its last attempt.
    Dead,
}

impl MessageStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Sent, Self::Suppressed, Self::Dead];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sent => "sent",
            Self::Suppressed => "suppressed",
            Self::Dead => "dead",
        }
    }
}

/// A message without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptMessage {
    /// Its receiver drops a second one with this key.
    pub idempotency_key: String,
    /// What it is about.
    pub topic: String,
    /// One of [`MessageStatus`].
    pub status: String,
    /// When it was written, Unix µs.
    pub created_at_us: i64,
    /// When it was taken, Unix µs.
    pub sent_at_us: Option<i64>,
    /// When it was given up, Unix µs.
    pub dead_at_us: Option<i64>,
    /// When it is due, Unix µs.
    pub next_attempt_at_us: i64,
    /// Attempts so far.
    pub attempts: i64,
    /// Why it is not sent.
    pub suppressed_reason: String,
    /// Why its last attempt failed.
    pub last_error: String,
}

/// Messages, last written first; of one status, or all.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(store: &Store, status: Option<MessageStatus>, count: i64) -> Result<Vec<KeptMessage>> {
    let query = sqlx::query(include_str!("../../queries/store/outbox_list.sql"));
    let query = query.bind(status.map_or("", MessageStatus::as_str)).bind(count);
    let rows = query.fetch_all(store.pool()).await.context("list messages")?;
    rows.iter().map(message).collect()
}

/// The message with this key.
///
/// # Errors
/// When the store cannot be read.
pub async fn by_key(store: &Store, idempotency_key: &str) -> Result<Option<KeptMessage>> {
    let query = sqlx::query(include_str!("../../queries/store/outbox_by_key.sql"));
    let row = query.bind(idempotency_key.to_owned()).fetch_optional(store.pool()).await;
    row.context("look a message up")?.as_ref().map(message).transpose()
}

/// What persons did to a message.
///
/// # Errors
/// When the store cannot be read.
pub async fn actions(store: &Store, idempotency_key: &str) -> Result<Vec<Kept>> {
    let query = sqlx::query(include_str!("../../queries/store/outbox_actions.sql"));
    let rows = query.bind(idempotency_key.to_owned()).fetch_all(store.pool()).await;
    rows.context("read what was done to a message")?.iter().map(Kept::of).collect()
}

/// Gives messages that were given up new attempts, and keeps why; answers their keys. The caller commits.
///
/// # Errors
/// When the store cannot be written.
pub async fn retry(
    connection: &mut AnyConnection,
    keys: &[String],
    reason: &str,
    actor: &str,
    at_us: i64,
) -> Result<Vec<String>> {
    const RETRY: &str = include_str!("../../queries/store/outbox_retry.sql");
    const KEEP: &str = include_str!("../../queries/store/outbox_action_insert.sql");
    let mut done: Vec<String> = Vec::new();
    for chunk in keys.chunks(CHUNK_ROWS) {
        let sql = repeat_values(Database::of(connection), RETRY, chunk.len());
        let mut query = sqlx::query(sql).bind(at_us);
        for key in chunk {
            query = query.bind(&**key);
        }
        for row in &query.fetch_all(&mut *connection).await.context("try messages again")? {
            done.push(row.try_get("idempotency_key")?);
        }
    }
    done.sort();
    for chunk in done.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), KEEP, chunk.len()));
        for key in chunk {
            query = query.bind(&**key).bind("retry").bind(reason).bind(actor).bind(at_us);
        }
        query.fetch_all(&mut *connection).await.context("keep what was done to messages")?;
    }
    Ok(done)
}

fn message(row: &AnyRow) -> Result<KeptMessage> {
    Ok(KeptMessage {
        idempotency_key: row.try_get("idempotency_key")?,
        topic: row.try_get("topic")?,
        status: row.try_get("status")?,
        created_at_us: row.try_get("created_at_us")?,
        sent_at_us: row.try_get("sent_at_us")?,
        dead_at_us: row.try_get("dead_at_us")?,
        next_attempt_at_us: row.try_get("next_attempt_at_us")?,
        attempts: row.try_get("attempts")?,
        suppressed_reason: row.try_get("suppressed_reason")?,
        last_error: row.try_get("last_error")?,
    })
}
