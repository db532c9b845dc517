//! `manifest.json`: what a run's folder holds, with checksums. It is written last, so a folder that
//! has one is whole, and a reader that finds every checksum right has a consistent set.

use super::cell::Style;
use super::tie_out::is_tied_out;
use super::{Rendered, ReportInput};
use crate::findings::Kind;
use crate::record::{format_instant, sha256_hex};
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// Its name in a run's folder.
pub const NAME: &str = "manifest.json";

/// Rises when a field changes its meaning or goes away.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Manifest<'a> {
    format: u32,
    tool: &'static str,
    version: &'a str,
    run_id: &'a str,
    outcome: &'static str,
    window: WindowJson,
    time_zone: &'static str,
    basis: &'static str,
    as_of: String,
    style: &'static str,
    files: Vec<FileJson<'a>>,
    totals: Totals,
}

#[derive(Serialize)]
struct WindowJson {
    from: String,
    until: String,
    from_us: i64,
    until_us: i64,
}

#[derive(Serialize)]
struct FileJson<'a> {
    name: &'a str,
    rows: u64,
    bytes: usize,
    sha256: String,
}

#[derive(Serialize)]
struct Totals {
    findings: usize,
    timing_differences: usize,
    accepted: usize,
    corrections: usize,
    findings_by_kind: BTreeMap<&'static str, usize>,
    counted: BTreeMap<String, u64>,
    tied_out: bool,
    tie_out: Vec<TotalJson>,
}

#[derive(Serialize)]
struct TotalJson {
    provider: String,
    account: String,
    mode: String,
    currency: String,
    effect_kind: &'static str,
    provider_minor: i64,
    local_minor: i64,
    difference_minor: i64,
    unexplained_minor: i64,
}

/// The manifest's bytes for the files that [`super::render`] made.
///
/// # Errors
/// When JSON cannot be written.
pub fn render(input: &ReportInput<'_>, files: &[Rendered]) -> Result<Vec<u8>> {
    let manifest = Manifest {
        format: FORMAT,
        tool: "recon",
        version: input.version,
        run_id: input.run_id,
        outcome: input.outcome.as_str(),
        window: WindowJson {
            from: format_instant(input.window.from_us, input.zone),
            until: format_instant(input.window.until_us, input.zone),
            from_us: input.window.from_us,
            until_us: input.window.until_us,
        },
        time_zone: input.zone.name(),
        basis: input.basis.as_str(),
        as_of: format_instant(input.as_of_us, input.zone),
        style: Style::as_str(input.style),
        files: files.iter().map(file_json).collect(),
        totals: totals(input),
    };
    let mut bytes = serde_json::to_vec_pretty(&manifest).context("write manifest.json in memory")?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn file_json(file: &Rendered) -> FileJson<'_> {
    FileJson { name: &file.name, rows: file.rows, bytes: file.bytes.len(), sha256: sha256_hex(&file.bytes) }
}

fn totals(input: &ReportInput<'_>) -> Totals {
    let mut findings_by_kind = BTreeMap::new();
    for row in input.findings.iter().filter(|row| !row.is_accepted()) {
        *findings_by_kind.entry(row.finding.kind.as_str()).or_insert(0) += 1;
    }
    let timing_differences =
        findings_by_kind.get(Kind::TimingDifference.as_str()).copied().unwrap_or_default();
    Totals {
        findings: findings_by_kind.values().sum::<usize>() - timing_differences,
        timing_differences,
        accepted: input.findings.iter().filter(|row| row.is_accepted()).count(),
        corrections: input.corrections.len(),
        findings_by_kind,
        counted: input.counted.clone(),
        tied_out: is_tied_out(input.tie_out),
        tie_out: input.tie_out.iter().map(total_json).collect(),
    }
}

fn total_json(row: &super::tie_out::TieOutRow) -> TotalJson {
    TotalJson {
        provider: row.scope.provider.to_string(),
        account: row.scope.account.to_string(),
        mode: row.scope.mode.to_string(),
        currency: row.currency.clone(),
        effect_kind: row.effect.as_str(),
        provider_minor: row.provider_minor,
        local_minor: row.local_minor,
        difference_minor: row.difference_minor,
        unexplained_minor: row.unexplained_minor,
    }
}
