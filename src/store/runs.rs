//! Runs and watermarks. A watermark is provider time of finished work: it moves with the end of a run
//! that saw everything, in the same transaction, and never by the local clock.

use super::Store;
use super::history::{self, Judged, Seen};
use crate::findings::life::{Place, amounts, life};
use crate::findings::{Finding, Kind};
use crate::record::{Scope, Window};
use anyhow::{Context, Result, bail, ensure};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AnyPool, Row};
use std::collections::BTreeMap;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// It has not ended: it still runs, or was killed.
    Started,
    /// Tied out.
    Clean,
    /// It saw everything and found something.
    Findings,
    /// It could not see everything, or failed.
    Incomplete,
}

impl RunOutcome {
    /// The contract's word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Clean => "clean",
            Self::Findings => "findings",
            Self::Incomplete => "incomplete",
        }
    }

    /// Whether the run saw everything.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Clean | Self::Findings)
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub run_id: String,
    /// When it began, Unix µs.
    pub started_at_us: i64,
    /// When it ended, well or badly, Unix µs; `None` while it runs, and for ever if it was killed.
    pub finished_at_us: Option<i64>,
    /// The period that it answers for.
    pub window: Window,
    /// Finance time zone.
    pub time_zone: String,
    /// Date basis.
    pub basis: String,
    /// How it ended.
    pub outcome: RunOutcome,
    /// Findings.
    pub findings: u64,
    /// Its report folder.
    pub report_dir: String,
    /// Why it did not see everything, without secrets; empty where it did, still runs or was killed.
    pub error: String,
}

/// Records that a run began; its outcome, end, findings and error are not looked at.
///
/// # Errors
/// When a run of that id began before, or the store cannot be written.
pub async fn start(store: &Store, run: &Run) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/run_start.sql");
    let mut tx = store.begin_write().await?;
    let query = sqlx::query(SQL).bind(&*run.run_id).bind(run.started_at_us).bind(run.window.from_us);
    let query =
        query.bind(run.window.until_us).bind(&*run.time_zone).bind(&*run.basis).bind(&*run.report_dir);
    let row = query.fetch_optional(&mut *tx).await.context("record that the run began")?;
    ensure!(row.is_some(), "a run with the id {} began before", run.run_id);
    tx.commit().await.context("record that the run began")
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The run.
    pub run_id: &'a str,
    /// When its findings were seen, as its report says: the run's one reading of the clock, Unix µs.
    pub seen_at_us: i64,
    /// Now, Unix µs.
    pub finished_at_us: i64,
    /// How it ended.
    pub outcome: RunOutcome,
    /// Why it did not see everything, without secrets; empty where it did.
    pub error: &'a str,
    /// Its findings.
    pub findings: &'a [Finding],
    /// What it judged, so that findings that are gone can be cleared.
    pub judged: &'a Judged,
    /// Provider time of finished work by account. Not moved unless the run saw everything.
    pub watermarks: &'a BTreeMap<Scope, i64>,
}

/// Records a run's end, its findings and its watermarks in one transaction.
///
/// # Errors
/// When the run never began, or the store cannot be written.
pub async fn finish(store: &Store, end: &End<'_>) -> Result<BTreeMap<String, Seen>> {
    const FINISH: &str = include_str!("../../queries/store/run_finish.sql");
    const WATERMARK: &str = include_str!("../../queries/store/watermark_set.sql");
    let context = || format!("record the end of the run {}", end.run_id);
    let mut tx = store.begin_write().await?;
    let judged = end.outcome.is_success().then_some(end.judged);
    let seen = history::record(&mut tx, end.run_id, end.seen_at_us, end.findings, judged).await?;
    if end.outcome.is_success() {
        for (scope, until_us) in end.watermarks {
            let query =
                sqlx::query(WATERMARK).bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode);
            query.bind(until_us).bind(end.run_id).fetch_optional(&mut *tx).await.with_context(context)?;
        }
    }
    let findings = i64::try_from(counted(&mut tx, end, &seen).await?)?;
    let query = sqlx::query(FINISH).bind(end.finished_at_us).bind(end.outcome.as_str()).bind(findings);
    let query = query.bind(end.error).bind(end.run_id);
    let row = query.fetch_optional(&mut *tx).await.with_context(context)?;
    ensure!(row.is_some(), "the run {} never began", end.run_id);
    tx.commit().await.with_context(context)?;
    Ok(seen)
}

/// As on the last line of the run: what the cut-off explains, or a person has accepted, is no finding to act on.
async fn counted(
    connection: &mut AnyConnection,
    end: &End<'_>,
    seen: &BTreeMap<String, Seen>,
) -> Result<usize> {
    let ids: Vec<String> = seen.keys().cloned().collect();
    let acts = super::life::acts(connection, &ids).await?;
    let is_counted = |finding: &&Finding| {
        let id = finding.id();
        let acts = acts.get(&id).map_or(&[][..], Vec::as_slice);
        let is_accepted = seen.get(&id).is_some_and(|seen| {
            let life = life(seen.standing.into(), seen.opening, &amounts(finding), acts, end.seen_at_us);
            life.place == Place::Accepted
        });
        finding.kind != Kind::TimingDifference && !is_accepted
    };
    Ok(end.findings.iter().filter(is_counted).count())
}

/// Records that a run could not do its work: *incomplete*, with `error` (one line, without secrets). A run
/// that has ended already stays as it ended.
///
/// # Errors
/// When the store cannot be written.
pub async fn fail(store: &Store, run_id: &str, finished_at_us: i64, error: &str) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/run_fail.sql");
    let context = || format!("record that the run {run_id} failed");
    let mut tx = store.begin_write().await.with_context(context)?;
    let query = sqlx::query(SQL).bind(finished_at_us).bind(error).bind(run_id);
    query.fetch_optional(&mut *tx).await.with_context(context)?;
    tx.commit().await.with_context(context)
}

/// How far an account is finished, Unix µs of provider time.
///
/// # Errors
/// When the store cannot be read.
pub async fn watermark(pool: &AnyPool, scope: &Scope) -> Result<Option<i64>> {
    const SQL: &str = include_str!("../../queries/store/watermark_read.sql");
    let query = sqlx::query(SQL).bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode);
    let row = query.fetch_optional(pool).await.context("read the watermark")?;
    Ok(row.map(|row| row.try_get("until_us")).transpose()?)
}

/// The latest runs, newest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn recent(pool: &AnyPool, count_max: u32) -> Result<Vec<Run>> {
    const SQL: &str = include_str!("../../queries/store/run_recent.sql");
    let rows = sqlx::query(SQL).bind(i64::from(count_max)).fetch_all(pool).await.context("read the runs")?;
    rows.iter().map(run).collect()
}

/// The run that last saw everything.
///
/// # Errors
/// When the store cannot be read.
pub async fn last_success(pool: &AnyPool) -> Result<Option<Run>> {
    const SQL: &str = include_str!("../../queries/store/run_last_success.sql");
    let row = sqlx::query(SQL).fetch_optional(pool).await.context("read the last successful run")?;
    row.as_ref().map(run).transpose()
}

/// Runs that began at or after an instant and have not ended, newest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn unfinished(pool: &AnyPool, since_us: i64) -> Result<Vec<Run>> {
    const SQL: &str = include_str!("../../queries/store/run_unfinished.sql");
    let rows = sqlx::query(SQL).bind(since_us).fetch_all(pool).await.context("read unfinished runs")?;
    rows.iter().map(run).collect()
}

/// One run.
///
/// # Errors
/// When the store cannot be read.
pub async fn by_id(pool: &AnyPool, run_id: &str) -> Result<Option<Run>> {
    const SQL: &str = include_str!("../../queries/store/run_by_id.sql");
    let row = sqlx::query(SQL).bind(run_id).fetch_optional(pool).await.context("read the run")?;
    row.as_ref().map(run).transpose()
}

fn run(row: &AnyRow) -> Result<Run> {
    let outcome = match row.try_get::<&str, _>("outcome")? {
        "started" => RunOutcome::Started,
        "clean" => RunOutcome::Clean,
        "findings" => RunOutcome::Findings,
        "incomplete" => RunOutcome::Incomplete,
        other => bail!("a run has the unknown outcome `{other}`"),
    };
    let error = match row.try_get("error") {
        Err(sqlx::Error::ColumnNotFound(_)) => String::new(),
        error => error?,
    };
    Ok(Run {
        run_id: row.try_get("run_id")?,
        started_at_us: row.try_get("started_at_us")?,
        finished_at_us: row.try_get("finished_at_us")?,
        window: Window { from_us: row.try_get("from_us")?, until_us: row.try_get("until_us")? },
        time_zone: row.try_get("time_zone")?,
        basis: row.try_get("basis")?,
        outcome,
        findings: u64::try_from(row.try_get::<i64, _>("findings")?).unwrap_or(0),
        report_dir: row.try_get("report_dir")?,
        error,
    })
}
