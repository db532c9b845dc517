//! `recon status`: when a run last saw everything, so that a scheduler that died does not look like a
//! night with nothing to do.
//!
//! Steps: read the last runs · name the ones that have not ended · compare the age of the last success.
//! The one thing that a reader would get wrong: the exit code answers *is it fresh*, and findings are
//! no reason to be woken by it; what the last successful run found stands in the last line.

use super::Outcome;
use crate::config::Settings;
use crate::record::{SECOND_US, format_instant};
use crate::store::runs::{self, Run};
use crate::store::{Access, Store};
use anyhow::Result;
use chrono_tz::Tz;
use std::io::Write;
use std::time::Duration;

/// Arguments of `recon status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusArgs {
    /// How old the last successful run may be; `None` only reports.
    pub max_age: Option<Duration>,
}

const RUNS_SHOWN: u32 = 5;

/// Prints the last runs.
///
/// # Errors
/// When the store is missing or cannot be read.
pub async fn status(settings: &Settings, args: &StatusArgs, now_us: i64) -> Result<Outcome> {
    status_with(settings, args, now_us, &mut super::Output).await
}

/// Prints the last runs to `out`. A successful run is one that saw everything, whatever it found. The answer
/// is *clean* while the last one is fresh, and *incomplete* when it ended longer ago than `max_age` or there
/// was none; the last line says *incomplete* as well then, else the outcome of that run.
///
/// # Errors
/// As [`status`].
pub async fn status_with(
    settings: &Settings,
    args: &StatusArgs,
    now_us: i64,
    out: &mut impl Write,
) -> Result<Outcome> {
    let zone = settings.report.time_zone;
    let store = Store::open(&settings.store_url, Access::ReadOnly).await?;
    let recent = runs::recent(store.pool(), RUNS_SHOWN).await?;
    let success = runs::last_success(store.pool()).await?;
    let since_us = success.as_ref().map_or(0, |run| run.started_at_us);
    let unfinished = runs::unfinished(store.pool(), since_us).await?;
    store.close().await;
    for run in &recent {
        writeln!(out, "{}", line(run, zone))?;
    }
    for run in &unfinished {
        let started = to_the_second(run.started_at_us, zone);
        writeln!(out, "{} started {started} and has not ended: it still runs or was killed", run.run_id)?;
    }
    let finished_us = success.as_ref().and_then(|run| run.finished_at_us);
    match finished_us {
        Some(at_us) => writeln!(out, "last successful run ended {}", to_the_second(at_us, zone))?,
        None => writeln!(out, "no run has ever seen everything")?,
    }
    let age_us = finished_us.map(|at_us| now_us.saturating_sub(at_us).max(0));
    let age_us_max = args.max_age.map_or(i64::MAX, |age| i64::try_from(age.as_micros()).unwrap_or(i64::MAX));
    let fresh = success.as_ref().filter(|_| age_us.is_some_and(|age_us| age_us <= age_us_max));
    let word = fresh.map_or(Outcome::Incomplete.as_str(), |run| run.outcome.as_str());
    let latest = recent.first().map_or("none", |run| run.outcome.as_str());
    let last = success.as_ref().map_or("none", |run| &*run.run_id);
    let findings = success.as_ref().map_or(0, |run| run.findings);
    let age = age_us.map_or("none".to_owned(), |age_us| format!("{}s", age_us / SECOND_US));
    writeln!(
        out,
        "outcome={word} findings={findings} last_success={last} age={age} unfinished={} latest={latest}",
        unfinished.len()
    )?;
    Ok(if fresh.is_some() { Outcome::Clean } else { Outcome::Incomplete })
}

fn line(run: &Run, zone: Tz) -> String {
    let ended = run.finished_at_us.map_or("not ended".to_owned(), |at_us| to_the_second(at_us, zone));
    let why = if run.error.is_empty() {
        String::new()
    } else {
        format!("\n    {}: {}", run.outcome.as_str(), run.error)
    };
    format!(
        "{}  {:<10}  started {}  ended {ended}  window {} to {}  findings {}{why}",
        run.run_id,
        run.outcome.as_str(),
        to_the_second(run.started_at_us, zone),
        format_instant(run.window.from_us, zone),
        format_instant(run.window.until_us, zone),
        run.findings
    )
}

/// When a run began or ended, for reading.
fn to_the_second(at_us: i64, zone: Tz) -> String {
    format_instant(at_us - at_us.rem_euclid(SECOND_US), zone)
}
