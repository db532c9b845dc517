//! `recon inbox`: what was received, what became of it, and what a person does about it.
//!
//! Steps: find the events · show them, or change them and keep why. Bodies hold personal data: only `show --body` and
//! `show --save` give one (`bytes.rs`).

mod bytes;

use super::{Outcome, shell_word};
use crate::cli::{ActArgs, InboxCommand, ShowEventArgs, UsageError};
use crate::config::Settings;
use crate::record::{EventKey, InboxStatus, format_instant};
use crate::store::operating::{self, Act, Action, Filed, Standing};
use crate::store::{Access, Store, others};
use anyhow::{Context, Result};
use chrono_tz::Tz;
use std::io::Write;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InboxArgs {
    /// List events, last received first.
    List {
        /// Of this status; `None`: all.
        status: Option<InboxStatus>,
        /// How many.
        limit: u32,
    },
    /// Show one.
    Show(ShowEventArgs),
    /// Change some.
    Act {
        /// [`Action::Retry`] or [`Action::Discard`].
        action: Action,
        /// Ids.
        events: Vec<String>,
        /// Why.
        reason: String,
    },
}

impl From<InboxCommand> for InboxArgs {
    fn from(command: InboxCommand) -> Self {
        let act = |action, ActArgs { events, reason }| Self::Act { action, events, reason };
        match command {
            InboxCommand::List { status, limit } => Self::List { status, limit },
            InboxCommand::Dead { limit } => Self::List { status: Some(InboxStatus::Dead), limit },
            InboxCommand::Show(args) => Self::Show(args),
            InboxCommand::Retry(args) => act(Action::Retry, args),
            InboxCommand::Discard(args) => act(Action::Discard, args),
        }
    }
}

/// Does it.
///
/// # Errors
/// When the store is missing, or there is no such event.
pub async fn inbox(
    settings: &Settings,
    args: &InboxArgs,
    now_us: i64,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    let zone = settings.report.time_zone;
    match args {
        InboxArgs::List { status, limit } => {
            let store = Store::open(&settings.store_url, Access::ReadOnly).await?;
            let status = status.map_or("", InboxStatus::as_str);
            let events = operating::list(&store, status, i64::from(*limit) + 1).await?;
            store.close().await;
            return listed(events.iter().map(|event| line(event, zone)), *limit, out);
        }
        InboxArgs::Show(args) => {
            let store = Store::open(&settings.store_url, Access::ReadOnly).await?;
            let found = find(&store, &args.event).await?;
            if args.body || args.save.is_some() || args.other.is_some() {
                let bytes = bytes::asked_for(&store, &found, args).await?;
                store.close().await;
                return bytes::give(&bytes, args, out);
            }
            show(&store, &found, (zone, now_us), out).await?;
            store.close().await;
        }
        InboxArgs::Act { action, events, reason } => {
            let store = Store::open(&settings.store_url, Access::Existing).await?;
            let meant = find_all(&store, events).await?;
            if *action == Action::Retry {
                refuse_without_bytes(&meant)?;
            }
            let keys: Vec<EventKey> = meant.iter().map(|filed| filed.key.clone()).collect();
            let done = change(&store, *action, &keys, reason, now_us).await?;
            store.close().await;
            for key in &done {
                writeln!(out, "{} {}", action.as_str(), shown(key))?;
            }
            for left in meant.iter().filter(|filed| !done.contains(&filed.key)) {
                let key = shown(&left.key);
                writeln!(
                    out,
                    "{key} is left: it ended as {}; `recon replay` would apply it once more",
                    left.status
                )?;
            }
        }
    }
    writeln!(out, "outcome=clean findings=0")?;
    Ok(Outcome::Clean)
}

/// Prints a list of one line more than `limit`, or fewer: the last one is only a sign that there are more.
pub(super) fn listed(
    lines: impl ExactSizeIterator<Item = String>,
    limit: u32,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (there, shown) = (lines.len(), lines.len().min(limit));
    for line in lines.take(limit) {
        writeln!(out, "{line}")?;
    }
    if there > limit {
        writeln!(out, "and more: --limit N lists up to N")?;
    }
    writeln!(out, "outcome=clean findings=0 listed={shown}")?;
    Ok(Outcome::Clean)
}

/// Does this to events, and keeps why; answers those to which it was done.
pub(super) async fn change(
    store: &Store,
    action: Action,
    keys: &[EventKey],
    reason: &str,
    now_us: i64,
) -> Result<Vec<EventKey>> {
    let reason = reason_given(reason)?;
    let mut tx = store.begin_write().await?;
    let act = Act { action, reason, actor: &actor(), at_us: now_us };
    let done = operating::act(&mut tx, keys, act).await?;
    tx.commit().await.context("commit what was done to events")?;
    Ok(done)
}

/// The events that are meant, each once.
pub(super) async fn find_all(store: &Store, events: &[String]) -> Result<Vec<Filed>> {
    let mut found = Vec::with_capacity(events.len());
    for event in events {
        found.push(find(store, event).await?);
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found.dedup_by(|a, b| a.key == b.key);
    Ok(found)
}

/// What has no bytes can only fail again.
fn refuse_without_bytes(events: &[Filed]) -> Result<()> {
    let is_open = |filed: &&Filed| matches!(filed.standing(), Standing::Dead | Standing::Waits);
    let Some(filed) = events.iter().filter(is_open).find(|filed| !filed.has_body) else { return Ok(()) };
    let message = format!("the bytes of {} are no longer kept, so it cannot be tried", shown(&filed.key));
    Err(UsageError::new(message, "`recon inbox discard EVENT --reason …` ends it").into())
}

/// A reason with something in it.
pub(super) fn reason_given(reason: &str) -> Result<&str> {
    let reason = reason.trim();
    if reason.is_empty() {
        let hint = "say why, for whoever asks later: --reason \"fixed in ticket 42\"";
        return Err(UsageError::new("--reason is empty", hint).into());
    }
    Ok(reason)
}

/// The one event that is meant.
pub(super) async fn find(store: &Store, event: &str) -> Result<Filed> {
    // Ids may hold slashes themselves: Shopify's end with their topic, such as `orders/create`.
    let mut found = operating::by_id(store, event).await?;
    if let (true, Some(event_id)) = (found.is_empty(), event.splitn(4, '/').nth(3)) {
        found = operating::by_id(store, event_id).await?;
        found.retain(|filed| shown(&filed.key) == event);
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(UsageError::new(
            format!("the inbox has no event {}", crate::config::shown(event)),
            "`recon inbox list` shows what was received",
        )
        .into()),
        _ => {
            let names: Vec<String> = found.iter().map(|filed| shown(&filed.key)).collect();
            let message = format!("{} is an event of several accounts", crate::config::shown(event));
            Err(UsageError::new(message, format!("name one of {}", names.join(", "))).into())
        }
    }
}

/// Who does it: the name that the shell has for whoever is logged in.
pub(super) fn actor() -> String {
    let name = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    name("SUDO_USER")
        .or_else(|| name("USER"))
        .or_else(|| name("LOGNAME"))
        .or_else(uid)
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Whom this process belongs to where no variable says it, as under cron or in a container: `uid 0`. Linux alone tells.
fn uid() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let real = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?;
    Some(format!("uid {real}"))
}

/// `provider/account/mode/id`.
pub(super) fn shown(key: &EventKey) -> String {
    format!("{}/{}", key.scope, key.event_id)
}

fn line(event: &Filed, zone: Tz) -> String {
    let why = match (event.last_error.as_str(), event.parked_for.as_str()) {
        ("", "") => String::new(),
        ("", parked_for) => format!("  waits for {parked_for}"),
        (error, _) => format!("  {error}"),
    };
    format!(
        "{}  {:<10}  {}  {}  attempts={} deliveries={}{why}",
        format_instant(event.received_at_us, zone),
        event.status,
        shown(&event.key),
        if event.event_type.is_empty() { "-" } else { &event.event_type },
        event.attempts,
        event.deliveries,
    )
}

/// When an event that waits is due.
pub(super) fn due(event: &Filed, (zone, now_us): (Tz, i64)) -> String {
    if event.next_attempt_at_us <= now_us {
        "now".to_owned()
    } else {
        format_instant(event.next_attempt_at_us, zone)
    }
}

async fn show(store: &Store, event: &Filed, at: (Tz, i64), out: &mut (dyn Write + Send)) -> Result<()> {
    /// Of more, the first ones will do.
    const OTHERS_MAX: i64 = 20;
    let instant = |at_us: i64| format_instant(at_us, at.0);
    let completed = event.completed_at_us.map(instant).unwrap_or_default();
    let due = if event.standing() == Standing::Waits { due(event, at) } else { String::new() };
    let body = operating::raw(store, &event.key).await?.body;
    let body = body.map_or_else(|| "no longer kept".to_owned(), |body| format!("{} bytes", body.len()));
    let (others, others_in_all) = others::conflicts(store, &event.key, OTHERS_MAX).await?;
    let rows = [
        ("event", shown(&event.key)),
        ("type", event.event_type.clone()),
        ("status", event.status.clone()),
        (if event.standing() == Standing::Waits { "last attempt" } else { "why" }, event.last_error.clone()),
        ("waits for", event.parked_for.clone()),
        ("received", instant(event.received_at_us)),
        ("last delivery", instant(event.last_delivery_at_us)),
        ("deliveries", event.deliveries.to_string()),
        ("attempts", event.attempts.to_string()),
        ("due", due),
        ("ended", completed),
        ("because", event.reason.clone()),
        ("body", format!("{body}, sha256 {}", event.body_sha256)),
        ("other bodies", if others_in_all == 0 { String::new() } else { others_in_all.to_string() }),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(out, "{name:<18}{value}")?;
    }
    for other in &others {
        let bytes =
            if other.bytes == 0 { "no longer kept".to_owned() } else { format!("{} bytes", other.bytes) };
        let (hash, first) = (&other.body_sha256, instant(other.received_at_us));
        let name = "other body";
        writeln!(out, "{name:<18}{bytes}, sha256 {hash}, deliveries {}, first {first}", other.deliveries)?;
    }
    if let Some(other) = others.iter().find(|other| other.bytes > 0) {
        let (id, hash) = (shell_word(&shown(&event.key)), other.body_sha256.get(..8).unwrap_or_default());
        writeln!(
            out,
            "{:<18}never applied; they hold personal data: `recon inbox show {id} --other {hash} --save FILE`",
            ""
        )?;
    }
    for kept in operating::actions(store, &event.key).await? {
        writeln!(out, "{:<18}{} by {}: {}", kept.action, instant(kept.at_us), kept.actor, kept.reason)?;
    }
    Ok(())
}
