//! `recon apply PLAN`: carries out exactly the rows of a reviewed plan.
//!
//! Steps: refuse what may not be written · read the plan · compare it with the store's copy, whole,
//! before any write · check the caps, and that every row has somewhere to go · take the lease · batch by batch ask the
//! provider whether what is booked is still there, and carry out · say what became of the rows.

mod asking;
mod carry_out;
mod deliver;
mod in_database;
mod in_database_status;
mod money;
pub mod plan_file;
mod post;
mod targets;
mod there;

pub use crate::apply::state::Fetched;
pub use asking::{AskProvider, fetch_events_with};
pub use carry_out::{RowOutcome, Tally, Work, carry_out};
pub use targets::check_auto;

use super::Outcome;
use crate::config::{Settings, Side};
use crate::correction::{ALLOWED_AUTO, Correction, check_caps};
use crate::record::{EventKey, Scope};
use crate::store::inbox::{self, ListedEvent};
use crate::store::lease::{self, Lease};
use crate::store::{Access, Store, runs};
use anyhow::{Context, Result};
use asking::Configured;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use tokio::sync::OnceCell;

/// Arguments of `recon apply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyArgs {
    /// The reviewed `plan.csv`.
    pub plan: PathBuf,
}

/// Carries out a plan, asking the provider for the statuses that it sets and whether the effects that it books
/// are still there. A row that the provider does not answer for stays `not_fetched`. See [`apply_with`].
///
/// # Errors
/// As [`apply_with`].
pub async fn apply(settings: &Settings, args: &ApplyArgs, now_us: i64) -> Result<Outcome> {
    apply_to(settings, args, now_us, &mut super::Output).await
}

/// As [`apply`], with the result to `out`.
///
/// # Errors
/// As [`apply_with`].
pub async fn apply_to(
    settings: &Settings,
    args: &ApplyArgs,
    now_us: i64,
    out: &mut impl Write,
) -> Result<Outcome> {
    apply_with(settings, args, now_us, &configured(settings, now_us), out, &mut std::io::stderr()).await
}

/// The providers of the configuration, opened when the first row needs them.
#[must_use]
pub fn configured(settings: &Settings, now_us: i64) -> impl AskProvider + '_ {
    Configured { settings, now_us, open: OnceCell::new() }
}

/// Carries out a plan, asking `provider` just before. What became of the rows goes to `out`, why a plan is
/// refused to `err`.
///
/// # Errors
/// When the plan cannot be opened, the provider cannot be asked whether what the plan books is still there,
/// or the store cannot be read or written.
pub async fn apply_with(
    settings: &Settings,
    args: &ApplyArgs,
    now_us: i64,
    provider: &impl AskProvider,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<Outcome> {
    let path = args.plan.display();
    if !targets::has_any(settings) {
        let hint = "choose for each kind of finding: [corrections.target] missed_event = \"sql\" (your statements) or \"http\" (your handler), see docs/targets.md; or carry the rows of plan.csv out yourself, with effect_key as a unique key";
        let message = "`recon apply` has nowhere to write: `[local]` names a team's own database, and no target is chosen";
        return refuse(out, err, message, hint);
    }
    if args.plan.is_dir() || !args.plan.exists() {
        return refuse(out, err, &format!("there is no plan at {path}"), NO_PLAN_HINT);
    }
    let rows = match plan_file::read(&args.plan)? {
        Ok(rows) => rows,
        Err(refusal) => return refuse(out, err, &format!("{path}: {refusal}"), PLAN_HINT),
    };
    let reader = Store::open(&settings.store_url, Access::ReadOnly).await?;
    let reviewed = plan_file::review(&reader, &rows).await?;
    let run = match &reviewed {
        Ok(reviewed) => runs::by_id(reader.pool(), &reviewed.run_id).await?,
        Err(_) => None,
    };
    reader.close().await;
    let reviewed = match reviewed {
        Ok(reviewed) => reviewed,
        Err(refusal) => return refuse(out, err, &format!("{path}: {refusal}"), PLAN_HINT),
    };
    if reviewed.corrections.is_empty() {
        return report(out, &Tally::default());
    }
    let Some(run) = run else {
        let message = format!("{path}: this store has no run {}", reviewed.run_id);
        return refuse(out, err, &message, PLAN_HINT);
    };
    if let Err(cap) = check_caps(&reviewed.corrections, &settings.corrections) {
        let hint = "take rows out of the plan, or raise the cap in `[corrections]` after looking at why it is so large";
        return refuse(out, err, &format!("{path}: {cap}"), hint);
    }
    if let Err(nowhere) = targets::sorted(settings, &reviewed.corrections) {
        return refuse(out, err, &format!("{path}: {}", nowhere.message), &nowhere.hint);
    }
    let store = Store::open(&settings.store_url, Access::Existing).await?;
    let Some(lease) = Lease::acquire_now(&store, lease::RUN).await? else {
        writeln!(
            err,
            "error: another run is at work on this store\nhint: wait until it ends, then apply again"
        )?;
        return end(out, Outcome::Locked, 0, &Tally::default());
    };
    let work = Work {
        store: &store,
        run_id: &run.run_id,
        run_started_us: run.started_at_us,
        now_us,
        inbox_is_ours: settings.inbox == Side::Store,
        keeps_messages: settings.outbox.url.is_some(),
        lease: Some(&lease),
    };
    let tally = targets::carry_out_all(work, settings, &reviewed.corrections, provider).await;
    let released = lease.release().await;
    store.close().await;
    let tally = tally.with_context(|| format!("apply {path}"))?;
    released?;
    report(out, &tally)
}

/// Carries out what `[corrections] auto` allows without a reviewed plan, within the run that planned
/// it and under that run's lease. A plan over a cap is refused whole.
///
/// # Errors
/// When a cap is exceeded (a [`crate::correction::CapError`], nothing written), the provider cannot be
/// asked, or the store cannot be read or written.
pub async fn apply_auto(
    work: Work<'_>,
    settings: &Settings,
    corrections: &[Correction],
    provider: &impl AskProvider,
) -> Result<Tally> {
    let allowed: Vec<Correction> =
        corrections.iter().filter(|row| row.allowed_by == ALLOWED_AUTO).cloned().collect();
    check_caps(&allowed, &settings.corrections)?;
    targets::carry_out_all(work, settings, &allowed, provider).await
}

/// The bytes of events that a run has read from the provider; what none has is asked for.
async fn kept_events(
    work: Work<'_>,
    provider: &impl AskProvider,
    keys: &BTreeSet<EventKey>,
) -> Result<BTreeMap<EventKey, ListedEvent>> {
    let keys: Vec<&EventKey> = keys.iter().collect();
    let mut connection = work.store.pool().acquire().await.context("open the store")?;
    let mut events = inbox::listed(&mut connection, &keys).await?;
    drop(connection);
    let mut absent: BTreeMap<&Scope, BTreeSet<String>> = BTreeMap::new();
    for key in keys.iter().filter(|key| !events.contains_key(**key)) {
        absent.entry(&key.scope).or_default().insert(key.event_id.clone());
    }
    if absent.is_empty() {
        return Ok(events);
    }
    for (scope, ids) in absent {
        if let Err(error) = provider.fetch_events(scope, &ids).await {
            tracing::warn!(%scope, "fetch {} events ({scope}): {error:#}", ids.len());
        }
    }
    let mut connection = work.store.pool().acquire().await.context("open the store")?;
    events.extend(inbox::listed(&mut connection, &keys).await?);
    Ok(events)
}

/// Lines about single rows.
const MOVED_LINES_MAX: usize = 20;

const PLAN_HINT: &str = "rows may be taken out of a plan, nothing else; run `recon` again for a fresh one";
/// What to do where there is no such file.
const NO_PLAN_HINT: &str = "name the plan.csv in the folder of a run, which the last line of that run tells";

fn refuse(out: &mut impl Write, err: &mut impl Write, message: &str, hint: &str) -> Result<Outcome> {
    write!(err, "{}", crate::telemetry::error_text(message, hint))?;
    end(out, Outcome::Config, 0, &Tally::default())
}

/// Prints what became of the rows.
fn report(out: &mut impl Write, tally: &Tally) -> Result<Outcome> {
    for outcome in RowOutcome::ALL {
        let count = tally.count(outcome);
        if count > 0 {
            writeln!(out, "{outcome:<16} {count:>9}  {}", meaning(outcome))?;
        }
    }
    for line in moved_lines(tally) {
        writeln!(out, "  {line}")?;
    }
    let for_a_person = [
        RowOutcome::StateMoved,
        RowOutcome::ManualOverride,
        RowOutcome::Conflicts,
        RowOutcome::Refused,
        RowOutcome::NotVerified,
    ];
    let left: u64 = for_a_person.into_iter().map(|outcome| tally.count(outcome)).sum();
    let not_done = tally.count(RowOutcome::NotFetched) + tally.count(RowOutcome::Failed);
    let outcome = match (not_done, left) {
        (0, 0) => Outcome::Clean,
        (0, _) => Outcome::Findings,
        _ => Outcome::Incomplete,
    };
    end(out, outcome, left, tally)
}

/// Why rows are not as planned, up to a number that a person reads.
pub(crate) fn moved_lines(tally: &Tally) -> Vec<String> {
    let mut lines: Vec<String> = tally.moved().iter().take(MOVED_LINES_MAX).cloned().collect();
    let more = tally.moved().len() - lines.len();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The last line.
fn end(out: &mut impl Write, outcome: Outcome, left: u64, tally: &Tally) -> Result<Outcome> {
    write!(out, "outcome={} findings={left}", outcome.as_str())?;
    for row_outcome in RowOutcome::ALL {
        write!(out, " {row_outcome}={}", tally.count(row_outcome))?;
    }
    writeln!(out)?;
    Ok(outcome)
}

const fn meaning(outcome: RowOutcome) -> &'static str {
    match outcome {
        RowOutcome::Applied => "carried out",
        RowOutcome::Adopted => "booked before under another key; the key is recorded, no amount changed",
        RowOutcome::AlreadyApplied => "carried out before; nothing written",
        RowOutcome::StateMoved => "changed since the run looked; left alone, run again to judge it anew",
        RowOutcome::ManualOverride => "a person changed it later; left alone",
        RowOutcome::NotFetched => "the provider could not be asked; apply again",
        RowOutcome::Conflicts => "booked otherwise, or booked and taken back; left for a person",
        RowOutcome::Refused => "your database or handler would not take it; nothing of it is kept",
        RowOutcome::NotVerified => {
            "your handler said yes, and your books do not show exactly what was planned; look into both before anything is booked"
        }
        RowOutcome::Failed => "your handler failed or did not answer; apply again",
    }
}
