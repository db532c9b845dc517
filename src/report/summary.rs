//! The summary on stdout: the same values as text for a tired person and as one line of JSON.
//!
//! The one thing to get right: sums never cross currencies, and within one currency what should be
//! added and what should be taken away are shown apart, because they would hide each other.

pub use super::sums::MoneySum;

use super::last_line::LastLine;
use super::next_steps::next_steps;
use super::sums::{Sums, shares, signed};
use super::tie_out::{TieOutRow, is_tied_out};
use super::{Exponent, ReportInput, findings_csv, summary_text};
use crate::findings::{Action, Kind, Standing};
use crate::gather::CoverageStatus;
use crate::record::{Scope, format_instant};
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// How many findings are listed by name.
const LARGEST_COUNT: usize = 10;

/// What the summary needs besides the report's input.
#[derive(Clone, Copy, Debug)]
pub struct Commands<'a> {
    /// The report's folder as a person would type it.
    pub dir: &'a str,
    /// The program with its global options, such as `recon --config /etc/recon.toml`; `None` where the books are
    /// a team's own, which `recon apply` does not write.
    pub program: Option<&'a str>,
    /// The command line of this run.
    pub rerun: &'a str,
}

/// The summary of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The run.
    pub run_id: String,
    /// How it ended.
    pub outcome: &'static str,
    /// First instant inside, RFC 3339.
    pub from: String,
    /// First instant after, RFC 3339.
    pub until: String,
    /// Finance zone.
    pub time_zone: &'static str,
    /// Which date counts.
    pub basis: &'static str,
    /// One entry for each stream.
    pub seen: Vec<Seen>,
    /// Ranges that were not seen.
    pub not_seen: Vec<NotSeen>,
    /// Findings without timing differences and accepted ones.
    pub findings: usize,
    /// Findings that the cut-off explains.
    pub timing_differences: usize,
    /// What persons live with until a day: not counted above, nor in `kinds` and `largest`.
    pub accepted: Vec<AcceptedLine>,
    /// One entry for each kind that was found.
    pub kinds: Vec<KindSum>,
    /// New, open, reopened.
    pub standing: BTreeMap<String, usize>,
    /// Age of the oldest finding, days.
    pub oldest_days: u64,
    /// The largest differences.
    pub largest: Vec<Large>,
    /// What was counted and not found.
    pub counted: BTreeMap<String, u64>,
    /// Whether every difference is explained.
    pub tied_out: bool,
    /// Lines of the tie-out.
    pub tie_out_lines: usize,
    /// Lines that are not explained.
    pub unexplained: Vec<Unexplained>,
    /// Corrections in the plan.
    pub corrections: usize,
    /// Money that the plan moves.
    pub correction_money: Vec<MoneySum>,
    /// What was carried out without a reviewed plan; only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Applied>,
    /// What to do, in order.
    pub next: Vec<String>,
    /// Where the report lies.
    pub report: String,
    /// The last line of stdout.
    #[serde(skip)]
    pub last_line: String,
}

/// What `--apply` did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Rows by what became of them; every outcome, 0 where there is none.
    pub rows: BTreeMap<&'static str, u64>,
    /// What the provider no longer has as planned.
    pub moved: Vec<String>,
}

/// What was seen of one stream.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    /// Scope, for people.
    pub scope: String,
    /// Stream.
    pub stream: String,
    /// Records held.
    pub records: u64,
    /// Pages read.
    pub pages: u64,
    /// Whether the whole window is proven.
    pub is_covered: bool,
}

/// A range that was not seen.
#[derive(Clone, Debug, Serialize)]
pub struct NotSeen {
    /// Scope, for people.
    pub scope: String,
    /// Stream.
    pub stream: String,
    /// `gap` or `not_listed`.
    pub status: &'static str,
    /// Why.
    pub cause: String,
    /// First instant, RFC 3339.
    pub from: String,
    /// First instant after, RFC 3339.
    pub until: String,
}

/// One kind's count and money.
#[derive(Clone, Debug, Serialize)]
pub struct KindSum {
    /// Kind.
    pub kind: &'static str,
    /// Findings.
    pub count: usize,
    /// Provider minus local.
    pub money: Vec<MoneySum>,
    /// What customers paid too much, in both sides' books alike: only for `duplicate_charge`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overcharged: Vec<MoneySum>,
}

/// One of the largest differences.
#[derive(Clone, Debug, Serialize)]
pub struct Large {
    /// Finding.
    pub finding_id: String,
    /// Kind.
    pub kind: &'static str,
    /// Severity.
    pub severity: String,
    /// Scope, for people.
    pub scope: String,
    /// Object.
    pub object_id: String,
    /// Currency.
    pub currency: String,
    /// Provider minus local, minor units.
    pub difference_minor: i64,
    /// The same as decimal text.
    pub difference: String,
}

/// A finding that somebody has accepted.
#[derive(Clone, Debug, Serialize)]
pub struct AcceptedLine {
    /// Finding.
    pub finding_id: String,
    /// Kind.
    pub kind: &'static str,
    /// Object.
    pub object_id: String,
    /// Currency, empty where there is no money.
    pub currency: String,
    /// Provider minus local as decimal text, empty where there is no money.
    pub difference: String,
    /// Who accepted it.
    pub by: String,
    /// When that ends, RFC 3339.
    pub until: String,
    /// Why.
    pub reason: String,
}

/// A line of the tie-out that nothing explains.
#[derive(Clone, Debug, Serialize)]
pub struct Unexplained {
    /// Scope, for people.
    pub scope: String,
    /// Effect kind.
    pub effect_kind: &'static str,
    /// Currency.
    pub currency: String,
    /// Minor units.
    pub unexplained_minor: i64,
    /// The same as decimal text.
    pub unexplained: String,
}

impl Summary {
    /// Sums a run up.
    ///
    /// # Errors
    /// When a sum leaves 64 bits; names what was added up.
    pub fn of(input: &ReportInput<'_>, commands: &Commands<'_>) -> Result<Self> {
        let (timing, found): (Vec<_>, Vec<_>) = input
            .findings
            .iter()
            .filter(|row| !row.is_accepted())
            .partition(|row| row.finding.kind == Kind::TimingDifference);
        let mut standing = BTreeMap::new();
        for row in input.findings {
            *standing.entry(Standing::to_string(&row.standing)).or_insert(0) += 1;
        }
        let last_line = LastLine {
            outcome: input.outcome,
            findings: found.len(),
            timing_differences: timing.len(),
            accepted: input.findings.iter().filter(|row| row.is_accepted()).count(),
            corrections: input.corrections.len(),
            window: Some((input.window, input.zone)),
            report: commands.dir,
        };
        let mut summary = Self {
            run_id: input.run_id.to_owned(),
            outcome: input.outcome.as_str(),
            from: format_instant(input.window.from_us, input.zone),
            until: format_instant(input.window.until_us, input.zone),
            time_zone: input.zone.name(),
            basis: input.basis.as_str(),
            seen: seen(input),
            not_seen: not_seen(input),
            findings: found.len(),
            timing_differences: timing.len(),
            accepted: accepted(input),
            kinds: kinds(input)?,
            standing,
            oldest_days: input.findings.iter().map(|row| row.age_days).max().unwrap_or(0),
            largest: largest(&found, input.exponent),
            counted: input.counted.clone(),
            tied_out: is_tied_out(input.tie_out),
            tie_out_lines: input.tie_out.len(),
            unexplained: unexplained(input.tie_out, input.exponent),
            corrections: input.corrections.len(),
            correction_money: correction_money(input)?,
            applied: None,
            next: Vec::new(),
            report: commands.dir.to_owned(),
            last_line: last_line.to_string(),
        };
        let review = found.iter().filter(|row| row.finding.action == Action::Review).count();
        summary.next = next_steps(&summary, review, commands);
        Ok(summary)
    }

    /// The text, last line included; with ANSI colours if asked for.
    #[must_use]
    pub fn text(&self, is_coloured: bool) -> String {
        summary_text::render(self, is_coloured)
    }

    /// One line of JSON, and then the last line, which scripts rely on.
    ///
    /// # Errors
    /// When JSON cannot be written.
    pub fn json(&self) -> Result<String> {
        let json = serde_json::to_string(self).context("write the summary as JSON")?;
        Ok(format!("{json}\n{}\n", self.last_line))
    }
}

/// A scope for people: `stripe live`, `stripe acct_1 test`.
fn scope_text(scope: &Scope) -> String {
    let parts = [&*scope.provider, &*scope.account, &*scope.mode];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn seen(input: &ReportInput<'_>) -> Vec<Seen> {
    let mut streams: BTreeMap<(&Scope, &str), Seen> = BTreeMap::new();
    for row in input.coverage {
        let entry = streams.entry((&row.scope, &row.stream)).or_insert_with(|| Seen {
            scope: scope_text(&row.scope),
            stream: row.stream.clone(),
            records: 0,
            pages: 0,
            is_covered: true,
        });
        entry.records = entry.records.saturating_add(row.records);
        entry.pages = entry.pages.saturating_add(row.pages);
        entry.is_covered &= row.status == CoverageStatus::Covered;
    }
    streams.into_values().collect()
}

fn not_seen(input: &ReportInput<'_>) -> Vec<NotSeen> {
    let mut rows: Vec<_> =
        input.coverage.iter().filter(|row| row.status != CoverageStatus::Covered).collect();
    rows.sort_by_key(|row| (row.status, *row));
    let entries = rows.into_iter().map(|row| NotSeen {
        scope: scope_text(&row.scope),
        stream: row.stream.clone(),
        status: row.status.as_str(),
        cause: row.cause.clone(),
        from: format_instant(row.from_us, input.zone),
        until: format_instant(row.until_us, input.zone),
    });
    entries.collect()
}

fn kinds(input: &ReportInput<'_>) -> Result<Vec<KindSum>> {
    let mut kinds = Vec::new();
    for kind in Kind::ALL {
        let (mut count, mut sums, mut overcharged) = (0, Sums::default(), Sums::default());
        for row in input.findings.iter().filter(|row| row.finding.kind == kind && !row.is_accepted()) {
            count += 1;
            let finding = row.finding;
            if let (Kind::DuplicateCharge, Some(once), Some(paid)) =
                (kind, finding.expected_minor, finding.found_minor)
            {
                let exponent = (input.exponent)(&finding.scope.provider, &finding.currency);
                overcharged.add(&finding.currency, exponent, paid.saturating_sub(once));
            }
            for (currency, minor) in shares(finding) {
                sums.add(currency, (input.exponent)(&finding.scope.provider, currency), minor);
            }
        }
        if count > 0 {
            let (kind, money) = (kind.as_str(), sums.finish(kind.as_str())?);
            kinds.push(KindSum { kind, count, money, overcharged: overcharged.finish(kind)? });
        }
    }
    Ok(kinds)
}

fn accepted(input: &ReportInput<'_>) -> Vec<AcceptedLine> {
    let rows = input.findings.iter().filter(|row| row.is_accepted());
    let lines = rows.filter_map(|row| {
        let (finding, acceptance) = (row.finding, row.acceptance?);
        let exponent = (input.exponent)(&finding.scope.provider, &finding.currency);
        Some(AcceptedLine {
            finding_id: finding.id(),
            kind: finding.kind.as_str(),
            object_id: finding.object_id.clone(),
            currency: finding.currency.clone(),
            difference: finding.difference_minor().map_or_else(String::new, |minor| signed(minor, exponent)),
            by: acceptance.by.clone(),
            until: format_instant(acceptance.until_us, input.zone),
            reason: acceptance.reason.clone(),
        })
    });
    lines.collect()
}

fn correction_money(input: &ReportInput<'_>) -> Result<Vec<MoneySum>> {
    let mut sums = Sums::default();
    for row in input.corrections.iter().filter(|row| row.amount_minor != 0) {
        sums.add(&row.currency, (input.exponent)(&row.scope.provider, &row.currency), row.amount_minor);
    }
    sums.finish("the plan")
}

/// Amounts of two currencies cannot be compared, so each currency's findings are ranked on their own
/// and the best ranks of all currencies are taken; within one currency the largest come first.
fn largest(found: &[&findings_csv::Row<'_>], exponent: Exponent<'_>) -> Vec<Large> {
    let mut by_currency: BTreeMap<&str, Vec<(u64, &findings_csv::Row<'_>)>> = BTreeMap::new();
    for row in found {
        let magnitude = row.finding.difference_minor().unwrap_or(0).unsigned_abs();
        if magnitude > 0 {
            by_currency.entry(&row.finding.currency).or_default().push((magnitude, row));
        }
    }
    let mut ranked = Vec::new();
    for (currency, mut rows) in by_currency {
        rows.sort_by_cached_key(|(magnitude, row)| (u64::MAX - magnitude, row.finding.sort_key()));
        rows.truncate(LARGEST_COUNT);
        ranked.extend(rows.into_iter().enumerate().map(|(rank, (_, row))| (rank, currency, row)));
    }
    ranked.sort_by_key(|(rank, currency, _)| (*rank, *currency));
    ranked.truncate(LARGEST_COUNT);
    ranked.sort_by_key(|(rank, currency, _)| (*currency, *rank));
    ranked.into_iter().map(|(_, _, row)| large(row, exponent)).collect()
}

fn large(row: &findings_csv::Row<'_>, exponent: Exponent<'_>) -> Large {
    let finding = row.finding;
    let difference_minor = finding.difference_minor().unwrap_or(0);
    Large {
        finding_id: finding.id(),
        kind: finding.kind.as_str(),
        severity: finding.severity.to_string(),
        scope: scope_text(&finding.scope),
        object_id: finding.object_id.clone(),
        currency: finding.currency.clone(),
        difference_minor,
        difference: signed(difference_minor, exponent(&finding.scope.provider, &finding.currency)),
    }
}

fn unexplained(rows: &[TieOutRow], exponent: Exponent<'_>) -> Vec<Unexplained> {
    let entries = rows.iter().filter(|row| row.unexplained_minor != 0).map(|row| Unexplained {
        scope: scope_text(&row.scope),
        effect_kind: row.effect.as_str(),
        currency: row.currency.clone(),
        unexplained_minor: row.unexplained_minor,
        unexplained: signed(row.unexplained_minor, exponent(&row.scope.provider, &row.currency)),
    });
    entries.collect()
}
