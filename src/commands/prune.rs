//! `recon prune`: drops raw bodies after their retention, never keys.

use super::Outcome;
use crate::config::Settings;
use crate::record::format_instant;
use crate::store::{Access, Store, operating};
use anyhow::Result;
use std::io::Write;

/// Prunes what was received longer ago than `[receive] retention`.
///
/// # Errors
/// When the store cannot be written.
pub async fn prune(settings: &Settings, now_us: i64, out: &mut (dyn Write + Send)) -> Result<Outcome> {
    let retention_us = i64::try_from(settings.receive.retention.as_micros()).unwrap_or(i64::MAX);
    let before_us = now_us.saturating_sub(retention_us);
    let store = Store::open(&settings.store_url, Access::ReadWrite).await?;
    let pruned = operating::prune(&store, before_us).await?;
    store.close().await;
    let before = format_instant(before_us, settings.report.time_zone);
    writeln!(
        out,
        "bodies of {} events received before {before} are dropped; their keys stay",
        pruned.events
    )?;
    if pruned.conflicts > 0 {
        writeln!(out, "and {} other bodies under known ids", pruned.conflicts)?;
    }
    if pruned.kept > 0 {
        writeln!(
            out,
            "{} older events keep theirs: they wait or are dead letters (`recon inbox dead`)",
            pruned.kept
        )?;
    }
    writeln!(out, "outcome=clean findings=0 pruned={}", pruned.events)?;
    Ok(Outcome::Clean)
}
