//! `recon prune`: drops raw bodies after their retention, never keys, and keeps how many in `inbox_action`.

use super::inbox::actor;
use super::{Outcome, counted};
use crate::config::Settings;
use crate::record::format_instant;
use crate::store::operating::{self, Act, Action};
use crate::store::{Access, Store};
use anyhow::Result;
use std::io::Write;
use std::time::Duration;

const DAY_SECONDS: u64 = 86_400;

/// Prunes what was received longer ago than `[receive] retention`.
///
/// # Errors
/// When the store cannot be written.
pub async fn prune(settings: &Settings, now_us: i64, out: &mut (dyn Write + Send)) -> Result<Outcome> {
    let retention_us = i64::try_from(settings.receive.retention.as_micros()).unwrap_or(i64::MAX);
    let before_us = now_us.saturating_sub(retention_us);
    let before = format_instant(before_us, settings.report.time_zone);
    let reason =
        format!("[receive] retention {}, received before {before}", spelled(settings.receive.retention));
    let act = Act { action: Action::Prune, reason: &reason, actor: &actor(), at_us: now_us };
    let store = Store::open(&settings.store_url, Access::Existing).await?;
    let pruned = operating::prune(&store, before_us, act).await?;
    store.close().await;
    writeln!(
        out,
        "bodies of {} received before {before} are dropped; their keys stay",
        counted(pruned.events, "event", "events")
    )?;
    if pruned.conflicts > 0 {
        let bodies = counted(pruned.conflicts, "other body", "other bodies");
        writeln!(out, "and {bodies} under known ids")?;
    }
    if pruned.kept > 0 {
        let events =
            counted(pruned.kept.unsigned_abs(), "older event keeps its own", "older events keep theirs");
        writeln!(out, "{events}: waiting or a dead letter (`recon inbox dead`)")?;
    }
    writeln!(out, "outcome=clean findings=0 pruned={}", pruned.events)?;
    Ok(Outcome::Clean)
}

/// As the setting is written: whole days, else seconds.
fn spelled(retention: Duration) -> String {
    let seconds = retention.as_secs();
    if seconds.is_multiple_of(DAY_SECONDS) {
        format!("{}d", seconds / DAY_SECONDS)
    } else {
        format!("{seconds}s")
    }
}
