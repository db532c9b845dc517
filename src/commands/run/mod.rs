//! `recon`: gather → compare → find → plan → report → save.
//!
//! The body of [`run`] is these steps. The one thing to get right: nothing but `--apply` writes
//! business state, no operating error becomes a finding, and the watermark moves only with a run that
//! saw everything.

mod applying;
mod completing;
mod gathering;
mod judging;
mod of_invoices;
mod offline;
mod planning;
mod reporting;
mod telling;
mod unbooked;
mod unknown_ids;
mod unread;

use super::{Outcome, Output};
use crate::cli::{self, RunRequest};
use crate::config::Settings;
use crate::night::Found;
use crate::record::{SECOND_US, Window};
use crate::report;
use crate::store::lease::{self, Lease};
use crate::store::runs::{self, Run, RunOutcome};
use crate::store::{Access, Store};
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};

/// How old an unfinished run may be for its closed slices to be taken over. What they hold is as old, so
/// groups that look wrong are read again before anybody is accused.
const RESUME_AGE_US_MAX: i64 = 6 * 3_600 * SECOND_US;

/// How much of an error the history of runs keeps.
const ERROR_CHARS_MAX: usize = 400;

/// What the steps of a run share.
pub(super) struct Job<'a> {
    settings: &'a Settings,
    request: &'a RunRequest,
    store: &'a Store,
    window: Window,
    run_id: String,
    /// The unfinished run, of the same window or of its beginning, whose slices this one takes over.
    resume_of: Option<String>,
}

impl Job<'_> {
    /// An error once somebody asked the run to stop: what was not answered since then is no answer.
    fn stop_if_asked(&self) -> Result<()> {
        anyhow::ensure!(!self.request.cancel.is_cancelled(), "stopped as asked");
        Ok(())
    }
}

/// How a run ended, and where its report lies (`None` when it never came to one).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Outcome.
    pub outcome: Outcome,
    /// Report folder.
    pub dir: Option<PathBuf>,
    /// What is told of it.
    pub found: Option<Found>,
}

/// Reconciles the requested window, says so on stdout, and tells those who were not there.
///
/// # Errors
/// As [`reconcile`].
pub async fn run(settings: &Settings, request: &RunRequest) -> Result<Outcome> {
    let began_us = crate::clock::machine_now_us();
    let finished = reconcile(settings, request, &mut Output).await;
    telling::tell(settings, request, began_us, &finished).await;
    Ok(finished?.outcome)
}

/// Reconciles the requested window; data for people and programs goes to `out`.
///
/// # Errors
/// When the work cannot be done; what was read until then is kept, and the same command goes on from there.
pub async fn reconcile(
    settings: &Settings,
    request: &RunRequest,
    out: &mut (dyn Write + Send),
) -> Result<Finished> {
    let store = Store::open(&settings.store_url, Access::ReadWrite).await?;
    let window = resolve_window(settings, request, &store).await?;
    announce(settings, request, window, out)?;
    let Some(lease) = Lease::acquire_now(&store, lease::RUN).await? else {
        writeln!(out, "another run holds the lease; nothing was read or written")?;
        writeln!(out, "outcome={} findings=0", Outcome::Locked.as_str())?;
        return Ok(Finished { outcome: Outcome::Locked, dir: None, found: None });
    };
    let job = begin(settings, request, &store, window).await?;
    let finished = work(&job, &lease, out).await;
    if let Err(error) = &finished {
        record_failure(&job, error).await;
    }
    let released = lease.release().await;
    store.close().await;
    // Where both failed, why the work failed is what to tell.
    let finished = finished?;
    released?;
    Ok(finished)
}

/// The steps.
async fn work(job: &Job<'_>, lease: &Lease, out: &mut (dyn Write + Send)) -> Result<Finished> {
    let gathered = gathering::gather(job).await?;
    let judged = judging::compare_and_judge(job, &gathered).await?;
    if lease.is_lost() {
        bail!("the lease was lost to another run while this one worked; nothing was reported");
    }
    reporting::report_and_save(job, &gathered, judged, lease, out).await
}

/// Writes down why the run failed, so that only one that was killed looks as if it had never ended. Errors
/// carry no secrets: what they say here they say on stderr as well.
async fn record_failure(job: &Job<'_>, error: &anyhow::Error) {
    let short = short(error);
    let run_id = &job.run_id;
    if let Err(error) = runs::fail(job.store, run_id, crate::clock::now_us(), &short).await {
        tracing::warn!(run_id, "the end of the run {run_id} could not be recorded: {error:#}");
    }
}

/// An error in one line of bounded length.
fn short(error: &anyhow::Error) -> String {
    let told = format!("{error:#}");
    let line: String = told.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(ERROR_CHARS_MAX).collect()
}

async fn resolve_window(settings: &Settings, request: &RunRequest, store: &Store) -> Result<Window> {
    let mut oldest = None;
    for name in &request.providers {
        let provider = settings.providers.iter().find(|provider| provider.name == *name);
        let mark = match provider {
            Some(provider) => runs::watermark(store.pool(), &provider.scope("")).await?,
            None => None,
        };
        oldest = match (oldest, mark) {
            (Some(a), Some(b)) => Some(std::cmp::min(a, b)),
            (a, b) => a.or(b),
        };
    }
    let settle_delay = settings.settle_delay(&request.providers);
    let zone = settings.report.time_zone;
    let window = cli::resolve_window(&request.window, zone, request.now_us, settle_delay, oldest)?;
    if !request.offline {
        return Ok(window);
    }
    // Nobody is asked what came since, so a bound that nobody typed is where stored work ends.
    match runs::last_success(store.pool()).await? {
        Some(last) => Ok(cli::stored_window(&request.window, window, last.window, oldest, zone)?),
        None => Ok(window),
    }
}

fn announce(
    settings: &Settings,
    request: &RunRequest,
    window: Window,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let zone = settings.report.time_zone;
    let line = cli::describe_window(window, zone, settings.report.basis);
    let line = match cli::unfinished_month(&request.window, window, zone) {
        Some(month) => format!("{line}\n{month} is not over: this is a part of it, and no month to close"),
        None => line,
    };
    if request.json {
        crate::telemetry::say(&line);
    } else {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

async fn begin<'a>(
    settings: &'a Settings,
    request: &'a RunRequest,
    store: &'a Store,
    window: Window,
) -> Result<Job<'a>> {
    let earlier = unfinished(request, store, window).await?;
    if let Some(run) = &earlier {
        // Its run folder may be elsewhere than this run's.
        report::write::discard(Path::new(&run.report_dir))?;
    }
    let resume_of = earlier.map(|run| run.run_id);
    let run_id = crate::telemetry::run_id(request.now_us);
    let run = Run {
        run_id: run_id.clone(),
        started_at_us: request.now_us,
        finished_at_us: None,
        window,
        time_zone: settings.report.time_zone.name().to_owned(),
        basis: settings.report.basis.as_str().to_owned(),
        outcome: RunOutcome::Started,
        findings: 0,
        report_dir: settings.report.dir.join(&run_id).display().to_string(),
        error: String::new(),
    };
    runs::start(store, &run).await.context("begin the run")?;
    Ok(Job { settings, request, store, window, run_id, resume_of })
}

/// The latest run of this window, where it did not see everything. Without `--until` the window of the
/// same command ends a little later each time, so only its beginning must be the same.
async fn unfinished(request: &RunRequest, store: &Store, window: Window) -> Result<Option<Run>> {
    if request.offline {
        return Ok(None);
    }
    let oldest_us = request.now_us.saturating_sub(RESUME_AGE_US_MAX);
    let is_same = |run: &Run| run.window.from_us == window.from_us && run.window.until_us <= window.until_us;
    let latest = runs::recent(store.pool(), 20).await?.into_iter().find(is_same);
    Ok(latest.filter(|run| !run.outcome.is_success() && run.started_at_us >= oldest_us))
}
