//! `recon outbox`: what was told to the team's own URL, what was not, and another try for what was given up.
//!
//! Bodies are never printed: they are the receiver's.

use super::Outcome;
use super::inbox::{actor, listed, reason_given};
use crate::cli::{OutboxCommand, RetryArgs, UsageError};
use crate::config::Settings;
use crate::record::format_instant;
use crate::store::sent::{self, KeptMessage, MessageStatus};
use crate::store::{Access, Store};
use anyhow::{Context, Result};
use chrono_tz::Tz;
use std::collections::BTreeMap;
use std::io::Write;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxArgs {
    /// List messages, last written first.
    List {
        /// Of this status; `None`: all.
        status: Option<MessageStatus>,
        /// How many.
        limit: u32,
    },
    /// Show what is known of one.
    Show {
        /// Its idempotency key.
        key: String,
    },
    /// Send what was given up after all.
    Retry {
        /// Idempotency keys.
        keys: Vec<String>,
        /// Why.
        reason: String,
    },
}

impl From<OutboxCommand> for OutboxArgs {
    fn from(command: OutboxCommand) -> Self {
        match command {
            OutboxCommand::List { status, limit } => Self::List { status, limit },
            OutboxCommand::Show { key } => Self::Show { key },
            OutboxCommand::Retry(RetryArgs { keys, reason }) => Self::Retry { keys, reason },
        }
    }
}

/// Does it.
///
/// # Errors
/// When the store is missing, or there is no such message.
pub async fn outbox(
    settings: &Settings,
    args: &OutboxArgs,
    now_us: i64,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    let zone = settings.report.time_zone;
    match args {
        OutboxArgs::List { status, limit } => {
            let store = Store::open(&settings.store_url, Access::ReadOnly).await?;
            let messages = sent::list(&store, *status, i64::from(*limit) + 1).await?;
            store.close().await;
            return listed(messages.iter().map(|message| line(message, zone)), *limit, out);
        }
        OutboxArgs::Show { key } => {
            let store = Store::open(&settings.store_url, Access::ReadOnly).await?;
            let found = find(&store, key).await?;
            show(&store, &found, zone, out).await?;
            store.close().await;
        }
        OutboxArgs::Retry { keys, reason } => {
            let store = Store::open(&settings.store_url, Access::Existing).await?;
            let (meant, done) = retry(&store, keys, reason, now_us).await?;
            store.close().await;
            for key in &done {
                writeln!(out, "retry {key}")?;
            }
            for (key, left) in meant.iter().filter(|(key, _)| !done.contains(key)) {
                writeln!(out, "{key} is left: it is {}, and only dead ones are tried again", left.status)?;
            }
        }
    }
    writeln!(out, "outcome=clean findings=0")?;
    Ok(Outcome::Clean)
}

/// The messages that were meant, as they were, and the keys of those that are due again.
async fn retry(
    store: &Store,
    keys: &[String],
    reason: &str,
    now_us: i64,
) -> Result<(BTreeMap<String, KeptMessage>, Vec<String>)> {
    let reason = reason_given(reason)?;
    let mut meant = BTreeMap::new();
    for key in keys {
        let found = find(store, key).await?;
        meant.insert(found.idempotency_key.clone(), found);
    }
    let keys: Vec<String> = meant.keys().cloned().collect();
    let mut tx = store.begin_write().await?;
    let done = sent::retry(&mut tx, &keys, reason, &actor(), now_us).await?;
    tx.commit().await.context("commit what was done to messages")?;
    Ok((meant, done))
}

async fn find(store: &Store, key: &str) -> Result<KeptMessage> {
    let found = sent::by_key(store, key).await?;
    found.ok_or_else(|| {
        UsageError::new(
            format!("the outbox has no message {}", crate::config::shown(key)),
            "`recon outbox list` shows their keys",
        )
        .into()
    })
}

/// Why a message is not sent, or not yet.
fn why(message: &KeptMessage) -> &str {
    if message.suppressed_reason.is_empty() { &message.last_error } else { &message.suppressed_reason }
}

fn line(message: &KeptMessage, zone: Tz) -> String {
    let why = match why(message) {
        "" => String::new(),
        why => format!("  {why}"),
    };
    format!(
        "{}  {:<10}  {}  attempts={}{why}",
        format_instant(message.created_at_us, zone),
        message.status,
        message.idempotency_key,
        message.attempts,
    )
}

async fn show(store: &Store, message: &KeptMessage, zone: Tz, out: &mut (dyn Write + Send)) -> Result<()> {
    let instant = |at_us: i64| format_instant(at_us, zone);
    let is_waiting = message.status == MessageStatus::Waiting.as_str();
    let rows = [
        ("key", message.idempotency_key.clone()),
        ("topic", message.topic.clone()),
        ("status", message.status.clone()),
        ("why", why(message).to_owned()),
        ("written", instant(message.created_at_us)),
        ("attempts", message.attempts.to_string()),
        ("due", if is_waiting { instant(message.next_attempt_at_us) } else { String::new() }),
        ("sent", message.sent_at_us.map(instant).unwrap_or_default()),
        ("given up", message.dead_at_us.map(instant).unwrap_or_default()),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(out, "{name:<18}{value}")?;
    }
    for kept in sent::actions(store, &message.idempotency_key).await? {
        writeln!(out, "{:<18}{} by {}: {}", kept.action, instant(kept.at_us), kept.actor, kept.reason)?;
    }
    Ok(())
}
