//! Steps four to six: plan, report, save. Files are published before the run is recorded as finished,
//! so that a run that is recorded has its report.

use super::gathering::Gathered;
use super::judging::Judged;
use super::{Job, Outcome};
use crate::commands::apply::{Fetched, Work, apply_auto};
use crate::correction::{Correction, PlanContext, plan};
use crate::findings::{Finding, Kind};
use crate::gather::Coverage;
use crate::provider::stripe;
use crate::record::Scope;
use crate::report::findings_csv::Row;
use crate::report::summary::{Commands, Summary};
use crate::report::tie_out::{TieOutRow, is_tied_out};
use crate::report::{self, ReportInput, cell::Style};
use crate::store::history::{self, Judged as JudgedScopes, Seen};
use crate::store::runs::{self, End, RunOutcome};
use crate::store::{ledger, plans};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};

/// Plans, writes every file, records the run, and says it all on stdout.
pub(super) async fn report_and_save(job: &Job<'_>, gathered: &Gathered, mut judged: Judged) -> Result<Outcome> {
    judged.findings.sort_by_cached_key(Finding::sort_key);
    judged.findings.dedup_by_key(|finding| finding.id());
    for finding in &judged.findings {
        judged.tie_out.add_finding(finding);
    }
    let tie_out = judged.tie_out.rows()?;
    let seen = seen(job, &judged.findings).await?;
    let corrections = planned(job, &judged.findings).await?;
    let outcome = outcome(&judged.findings, &gathered.coverage, &tie_out);
    let rows = rows(job, &judged.findings, &seen);
    let counted = counted(&judged);
    let health = crate::store::health::inbox_health(job.store, job.request.now_us).await?;
    let exponent = |_: &str, currency: &str| stripe::exponent(currency);
    let input = ReportInput {
        run_id: &job.run_id,
        version: env!("CARGO_PKG_VERSION"),
        window: job.window,
        zone: job.settings.report.time_zone,
        basis: job.settings.report.basis,
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
    save(job, gathered, &judged.findings, outcome).await?;
    let summary = Summary::of(
        &input,
        &Commands { dir: &dir.display().to_string(), program: "recon", rerun: &rerun() },
    )?;
    print(job, &summary)?;
    if job.request.apply {
        apply_allowed(job, gathered, &corrections).await?;
    }
    println!("{}", summary.last_line);
    Ok(super::outcome_of(outcome))
}
