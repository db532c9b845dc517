//! Reports: functions from values to bytes, one file per output. Pure, except `write.rs`.
//!
//! A run makes a [`ReportInput`], calls [`render`] and [`manifest::render`], publishes both with
//! [`write::publish`], and prints [`summary::Summary`]. Same input, same bytes.

pub mod cell;
pub mod sheet;
pub mod read;
pub mod findings_csv;
pub mod tie_out;
pub mod coverage_csv;
pub mod plan_csv;
pub mod inbox_health;
pub mod manifest;
pub mod write;
pub mod last_line;
pub mod sums;
pub mod aging;
pub mod summary;
pub mod next_steps;
pub mod timeline;
pub mod differences_csv;
pub mod pair_summary;
mod summary_text;
#[cfg(test)]
mod timeline_tests;

use crate::config::Basis;
use crate::correction::Correction;
use crate::gather::Coverage;
use crate::record::Window;
use anyhow::{Context, Result};
use chrono_tz::Tz;
use std::collections::BTreeMap;

/// Decimals of a currency at a provider: (provider name, lower-case currency) → exponent.
pub type Exponent<'a> = &'a (dyn Fn(&str, &str) -> u32 + Sync);

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Tied out; timing differences at most.
    Clean,
    /// Something disagrees.
    Findings,
    /// Not everything could be seen, or not everything is explained.
    Incomplete,
    /// Another run holds the lease.
    Locked,
    /// Arguments, configuration or schema unusable.
    Config,
}

impl Outcome {
    /// The outcome of a run that came to its end. An unexplained difference is never clean and never
    /// mere findings: a rule missed something, so the run's answer is not whole.
    #[must_use]
    pub const fn judge(findings: usize, is_complete: bool, is_tied_out: bool) -> Self {
        if !is_complete || !is_tied_out {
            Self::Incomplete
        } else if findings > 0 {
            Self::Findings
        } else {
            Self::Clean
        }
    }

    /// The word on the last line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Findings => "findings",
            Self::Incomplete => "incomplete",
            Self::Locked => "locked",
            Self::Config => "config",
        }
    }

    /// The process's exit code.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Incomplete => 2,
            Self::Locked => 75,
            Self::Config => 78,
        }
    }
}

/// Everything that a run's files are made of.
#[derive(Clone, Copy)]
pub struct ReportInput<'a> {
    /// The run's id: name of its folder.
    pub run_id: &'a str,
    /// recon's version.
    pub version: &'a str,
    /// What the run answers for.
    pub window: Window,
    /// Finance zone.
    pub zone: Tz,
    /// Which date puts money into the window.
    pub basis: Basis,
    /// The moment of the inbox and the books that were compared, Unix µs.
    pub as_of_us: i64,
    /// How files are spelled.
    pub style: cell::Style,
    /// How the run ended.
    pub outcome: Outcome,
    /// Decimals of currencies.
    pub exponent: Exponent<'a>,
    /// Findings, in any order.
    pub findings: &'a [findings_csv::Row<'a>],
    /// Rows of [`tie_out::TieOutInput::rows`].
    pub tie_out: &'a [tie_out::TieOutRow],
    /// Coverage, in any order.
    pub coverage: &'a [Coverage],
    /// The plan, in its order.
    pub corrections: &'a [Correction],
    /// Inbox health, in any order.
    pub inbox_health: &'a [inbox_health::InboxHealth],
    /// What was counted and not found: `in_flight`, `missed_without_consequence`, ….
    pub counted: &'a BTreeMap<String, u64>,
}

/// A file, ready to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Its name in the run's folder.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Rows without the header.
    pub rows: u64,
}

/// Every file of a run but the manifest.
///
/// # Errors
/// When a CSV writer refuses; names the file.
pub fn render(input: &ReportInput<'_>) -> Result<Vec<Rendered>> {
    let (style, zone, exponent) = (input.style, input.zone, input.exponent);
    let files = [
        ("findings.csv", findings_csv::render(input.findings, style, zone, exponent)),
        ("tie_out.csv", tie_out::render(input.tie_out, style, exponent)),
        ("coverage.csv", coverage_csv::render(input.coverage, style, zone)),
        ("plan.csv", plan_csv::render(input.corrections, style, exponent)),
        ("inbox_health.csv", inbox_health::render(input.inbox_health, style, zone)),
    ];
    let named = files.into_iter().map(|(name, made)| {
        let (bytes, rows) = made.with_context(|| format!("make {name}"))?;
        Ok(Rendered { name: name.to_owned(), bytes, rows })
    });
    named.collect()
}
