//! Steps four to six: plan, report, save. Files are published before the run is recorded as finished,
//! so that a run that is recorded has its report.

use super::applying::{applied, applied_text, apply_allowed};
use super::gathering::Gathered;
use super::judging::Judged;
use super::planning::planned;
use super::{Finished, Job, Outcome};
use crate::clock;
use crate::commands::{arguments, program};
use crate::config::Side;
use crate::findings::life::{Life, Place, amounts, life};
use crate::findings::{Finding, Kind, Standing};
use crate::gather::{Coverage, CoverageStatus};
use crate::night::Found;
use crate::provider::{Client, stripe};
use crate::record::{SECOND_US, Scope};
use crate::report::findings_csv::Row;
use crate::report::inbox_health::InboxHealth;
use crate::report::next_steps::shell_word;
use crate::report::summary::{Commands, Summary};
use crate::report::tie_out::{TieOutRow, is_tied_out};
use crate::report::{self, ReportInput, cell::Style};
use crate::store::ScopeHealth;
use crate::store::history::{self, Judged as JudgedScopes, Seen};
use crate::store::lease::Lease;
use crate::store::runs::{self, End, RunOutcome};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

/// An event that waits longer is worth a line.
const WAITING_SECONDS_MAX: i64 = 15 * 60;

const DAY_US: i64 = 86_400_000_000;

/// Plans, writes every file, records the run, and says it all on stdout.
pub(super) async fn report_and_save(
    job: &Job<'_>,
    gathered: &Gathered,
    mut judged: Judged,
    lease: &Lease,
    out: &mut (dyn Write + Send),
) -> Result<Finished> {
    judged.findings.sort_by_cached_key(Finding::sort_key);
    judged.findings.dedup_by_key(|finding| finding.id());
    for finding in &judged.findings {
        judged.tie_out.add_finding(finding);
    }
    let tie_out = judged.tie_out.rows()?;
    let seen = look_up(job, &judged.findings).await?;
    let corrections = planned(job, &mut judged.findings, &accepted(&seen)).await?;
    let rows = rows(job, &judged.findings, &seen);
    let outcome = outcome(&rows, &gathered.coverage, &tie_out);
    let counted = counted(&judged);
    let health = health(job).await?;
    let exponent = |_: &str, currency: &str| stripe::exponent(currency);
    let input = ReportInput {
        run_id: &job.run_id,
        version: env!("CARGO_PKG_VERSION"),
        window: job.window,
        zone: job.settings.report.time_zone,
        basis: job.settings.report.basis,
        as_of_us: judged.as_of_us,
        style: Style::of(&job.settings.report),
        outcome,
        exponent: &exponent,
        findings: &rows,
        tie_out: &tie_out,
        coverage: &gathered.coverage,
        corrections: &corrections,
        inbox_health: &health,
        counted: &counted,
    };
    let files = report::render(&input)?;
    let manifest = report::manifest::render(&input, &files)?;
    let dir = report::write::publish(&job.settings.report.dir, &job.run_id, &files, &manifest)?;
    let error = why_incomplete(&gathered.coverage, &tie_out);
    save(job, gathered, &judged.findings, outcome, &error).await?;
    let shown = dir.display().to_string();
    let program = configured_program();
    let can_apply = job.settings.local.side == Side::Store || !job.settings.targets.chosen.is_empty();
    let program = can_apply.then_some(program.as_str());
    let mut summary = Summary::of(&input, &Commands { dir: &shown, program, rerun: &rerun() })?;
    let mut text = String::new();
    if job.request.apply && outcome != Outcome::Incomplete {
        let tally = apply_allowed(job, gathered, &corrections, lease).await?;
        text = applied_text(&tally);
        summary.applied = Some(applied(&tally));
    }
    print(job, &text, &summary, out)?;
    let found = Found {
        requests: gathered.clients.values().map(Client::requests).sum(),
        waited_ms: gathered.clients.values().map(waited_ms).sum(),
        ..Found::of(&input, error, absolute(&dir))
    };
    Ok(Finished { outcome, dir: Some(dir), found: Some(found) })
}

/// A folder as those find it who were not there.
fn absolute(dir: &Path) -> String {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()).display().to_string()
}

fn waited_ms(client: &Client) -> u64 {
    u64::try_from(client.waited().as_millis()).unwrap_or(u64::MAX)
}

fn outcome(rows: &[Row<'_>], coverage: &[Coverage], tie_out: &[TieOutRow]) -> Outcome {
    let is_complete = coverage.iter().all(|row| row.status != CoverageStatus::Gap);
    let is_counted = |row: &&Row<'_>| row.finding.kind != Kind::TimingDifference && !row.is_accepted();
    let count = rows.iter().filter(is_counted).count();
    Outcome::judge(count, is_complete, is_tied_out(tie_out))
}

/// Why a run that came to its end is incomplete; empty where it is not.
fn why_incomplete(coverage: &[Coverage], tie_out: &[TieOutRow]) -> String {
    let gaps = coverage.iter().filter(|row| row.status == CoverageStatus::Gap);
    let gaps: BTreeSet<String> = gaps.map(|row| format!("{} ({})", row.stream, row.cause)).collect();
    if !gaps.is_empty() {
        return format!("not seen whole: {}", gaps.into_iter().collect::<Vec<_>>().join(", "));
    }
    if is_tied_out(tie_out) {
        String::new()
    } else {
        "not tied out: no finding explains a difference".to_owned()
    }
}

/// What is known of a finding before this run is recorded.
struct Known {
    first_seen_us: i64,
    life: Life,
}

async fn look_up(job: &Job<'_>, findings: &[Finding]) -> Result<BTreeMap<String, Known>> {
    let now_us = job.request.now_us;
    let mut connection = job.store.pool().acquire().await.context("read the history of findings")?;
    let seen = history::look_up(&mut connection, &job.run_id, now_us, findings).await?;
    let ids: Vec<String> = seen.keys().cloned().collect();
    let acts = crate::store::life::acts(&mut connection, &ids).await?;
    let known = findings.iter().filter_map(|finding| {
        let id = finding.id();
        let Seen { first_seen_us, standing, opening } = *seen.get(&id)?;
        let acts = acts.get(&id).map_or(&[][..], Vec::as_slice);
        let life = life(standing.into(), opening, &amounts(finding), acts, now_us);
        Some((id, Known { first_seen_us, life }))
    });
    Ok(known.collect())
}

fn accepted(known: &BTreeMap<String, Known>) -> BTreeSet<String> {
    let accepted = known.iter().filter(|(_, known)| known.life.place == Place::Accepted);
    accepted.map(|(id, _)| id.clone()).collect()
}

fn rows<'a>(job: &'a Job<'_>, findings: &'a [Finding], known: &'a BTreeMap<String, Known>) -> Vec<Row<'a>> {
    let now_us = job.request.now_us;
    findings
        .iter()
        .map(|finding| {
            let known = known.get(&finding.id());
            let life = known.map(|known| &known.life);
            let first_seen_us = known.map_or(now_us, |known| known.first_seen_us);
            let by_kind = || job.settings.owners.get(&finding.kind).map_or("", String::as_str);
            Row {
                finding,
                first_seen_us,
                age_days: u64::try_from((now_us - first_seen_us) / DAY_US).unwrap_or(0),
                standing: life.map_or(Standing::New, |life| standing(life.place)),
                owner: life.and_then(|life| life.owner.as_deref()).unwrap_or_else(by_kind),
                acceptance: life.and_then(|life| life.acceptance.as_ref()),
            }
        })
        .collect()
}

/// What this run sees is there, whatever was said of it while the run was under way.
const fn standing(place: Place) -> Standing {
    match place {
        Place::New => Standing::New,
        Place::Reopened => Standing::Reopened,
        Place::Accepted => Standing::Accepted,
        Place::Open | Place::Cleared | Place::Closed => Standing::Open,
    }
}

async fn health(job: &Job<'_>) -> Result<Vec<InboxHealth>> {
    let old_before_us = job.request.now_us - WAITING_SECONDS_MAX * SECOND_US;
    let mut scopes = crate::store::inbox_health(job.store, job.window, old_before_us).await?;
    let mut refused = BTreeMap::new();
    for (provider, deliveries) in crate::store::refused(job.store, job.window).await? {
        let scope = platform_account(job, &scopes, &provider);
        scopes.entry(scope.clone()).or_default();
        refused.insert(scope, deliveries);
    }
    let rows = scopes.into_iter().map(|(scope, found)| InboxHealth {
        refused_deliveries: refused.get(&scope).copied().unwrap_or(0),
        scope,
        events: found.events,
        duplicates_dropped: found.duplicates,
        conflicting_deliveries: found.conflicting,
        waiting_age_seconds_max: WAITING_SECONDS_MAX.unsigned_abs(),
        waiting_above_age: found.waiting_above_age,
        oldest_waiting_us: found.oldest_waiting_us,
        completion_mean_ms: found.completion.map(|completion| completion.mean_ms),
        completion_p99_ms: found.completion.map(|completion| completion.p99_ms),
        completion_slowest_ms: found.completion.map(|completion| completion.slowest_ms),
    });
    Ok(rows.collect())
}

/// Where a provider's refused deliveries count: nobody knows whose they are.
fn platform_account(job: &Job<'_>, known: &BTreeMap<Scope, ScopeHealth>, provider: &str) -> Scope {
    let configured = job.settings.endpoints.iter().find(|endpoint| endpoint.name == provider);
    let received = || known.keys().find(|scope| *scope.provider == *provider).map(|scope| &*scope.mode);
    let mode = configured.map(|endpoint| &*endpoint.mode).or_else(received);
    Scope::new(provider, "", mode.unwrap_or_default())
}

fn counted(judged: &Judged) -> BTreeMap<String, u64> {
    let counts = judged.counts;
    let counted = judged.counted;
    [
        ("in_flight", counted.in_flight),
        ("missed_without_consequence", counted.missed_without_consequence),
        ("harmless_out_of_order", counted.harmless_out_of_order),
        ("not_judged", counted.not_judged),
        ("provider_events", counts.provider_events),
        ("provider_effects", counts.provider_effects),
        ("inbox_events", counts.inbox_events),
        ("local_effects", counts.local_effects),
        ("local_states", counts.local_states),
    ]
    .map(|(name, count)| (name.to_owned(), count))
    .into()
}

async fn save(
    job: &Job<'_>,
    gathered: &Gathered,
    findings: &[Finding],
    outcome: Outcome,
    error: &str,
) -> Result<()> {
    let scopes: Vec<Scope> = gathered.readings.iter().map(|reading| reading.scope.clone()).collect();
    let watermarks: BTreeMap<Scope, i64> = if job.request.offline {
        BTreeMap::new()
    } else {
        scopes.iter().map(|scope| (scope.clone(), job.window.until_us)).collect()
    };
    let end = End {
        run_id: &job.run_id,
        seen_at_us: job.request.now_us,
        finished_at_us: clock::now_us(),
        outcome: match outcome {
            Outcome::Clean => RunOutcome::Clean,
            Outcome::Findings => RunOutcome::Findings,
            Outcome::Incomplete | Outcome::Locked | Outcome::Config => RunOutcome::Incomplete,
        },
        error,
        findings,
        judged: &JudgedScopes { scopes, window: job.window },
        watermarks: &watermarks,
    };
    runs::finish(job.store, &end).await?;
    Ok(())
}

/// The summary, in JSON with what was applied; as text that stands before it.
fn print(job: &Job<'_>, applied: &str, summary: &Summary, out: &mut (dyn Write + Send)) -> Result<()> {
    let text = if job.request.json {
        summary.json()?
    } else {
        format!("{applied}{}", summary.text(crate::telemetry::is_coloured()))
    };
    out.write_all(text.as_bytes()).context("write to stdout")
}

/// The program with the configuration that this run was given, for the next command.
pub(super) fn configured_program() -> String {
    let program = program();
    let mut words = arguments();
    while let Some(word) = words.next() {
        if word == "--config" {
            return words
                .next()
                .map_or_else(String::new, |path| format!("{program} --config {}", shell_word(&path)));
        }
        if word.starts_with("--config=") {
            return format!("{program} {}", shell_word(&word));
        }
    }
    program
}

/// The command line of this run as a person would type it again.
fn rerun() -> String {
    let words: Vec<String> = arguments().map(|word| shell_word(&word)).collect();
    format!("{} {}", program(), words.join(" ")).trim_end().to_owned()
}
