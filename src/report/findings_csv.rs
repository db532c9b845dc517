//! `findings.csv`: one row for each finding. The columns and their order are a contract.
//!
//! The one thing to get right: `currency` is the provider's. Where the local side booked another
//! one, `found_minor` is an amount of that other currency, the note begins by saying so, and
//! `difference_minor` is the provider's whole amount, so that the column adds up per currency.

use super::Exponent;
use super::cell::{Cell, Column, Holds, Style};
use super::sheet::{Sheet, join_ids};
use crate::findings::life::{Acceptance, Validity};
use crate::findings::{Finding, Standing};
use crate::record::{Status, format_instant};
use anyhow::Result;
use chrono_tz::Tz;

/// Columns of `findings.csv`.
pub const COLUMNS: [Column; 23] = [
    Column::new("finding_id", Holds::Id),
    Column::new("kind", Holds::Text),
    Column::new("cause", Holds::Text),
    Column::new("severity", Holds::Text),
    Column::new("provider", Holds::Text),
    Column::new("account", Holds::Id),
    Column::new("mode", Holds::Text),
    Column::new("object_id", Holds::Id),
    Column::new("event_ids", Holds::Id),
    Column::new("effect_ids", Holds::Id),
    Column::new("currency", Holds::Text),
    Column::new("expected_minor", Holds::Minor),
    Column::new("found_minor", Holds::Minor),
    Column::new("difference_minor", Holds::Minor),
    Column::new("expected_state", Holds::Text),
    Column::new("found_state", Holds::Text),
    Column::new("occurred_at", Holds::Time),
    Column::new("first_seen_at", Holds::Time),
    Column::new("age_days", Holds::Count),
    Column::new("status", Holds::Text),
    Column::new("owner", Holds::Text),
    Column::new("correction", Holds::Text),
    Column::new("note", Holds::Text),
];

/// A finding and what earlier runs and the configuration say of it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The finding.
    pub finding: &'a Finding,
    /// First run that saw it, Unix µs.
    pub first_seen_us: i64,
    /// Whole days since then.
    pub age_days: u64,
    /// New, open, reopened or accepted.
    pub standing: Standing,
    /// Whom it was given to, else who looks after its kind; empty where nobody is named.
    pub owner: &'a str,
    /// Who accepted it until when and why, also where that no longer holds.
    pub acceptance: Option<&'a Acceptance>,
}

impl Row<'_> {
    /// Whether a person lives with it for now, so that it does not count.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.standing == Standing::Accepted
    }
}

/// The file's bytes and row count; rows in report order whatever order they come in.
///
/// # Errors
/// When the CSV writer refuses.
pub fn render(rows: &[Row<'_>], style: Style, zone: Tz, exponent: Exponent<'_>) -> Result<(Vec<u8>, u64)> {
    let mut sorted: Vec<&Row<'_>> = rows.iter().collect();
    sorted.sort_by_cached_key(|row| row.finding.sort_key());
    let mut sheet = Sheet::new(style, &COLUMNS)?;
    for row in sorted {
        push(&mut sheet, row, style, zone, exponent)?;
    }
    sheet.finish()
}

fn push(sheet: &mut Sheet, row: &Row<'_>, style: Style, zone: Tz, exponent: Exponent<'_>) -> Result<()> {
    let finding = row.finding;
    let provider = &*finding.scope.provider;
    let ours = exponent(provider, &finding.currency);
    let theirs =
        if finding.found_currency.is_empty() { ours } else { exponent(provider, &finding.found_currency) };
    let minor =
        |amount: Option<i64>, decimals| amount.map_or(Cell::Empty, |minor| Cell::Minor(minor, decimals));
    sheet.push(&[
        Cell::Id(&finding.id()),
        Cell::Text(finding.kind.as_str()),
        Cell::Text(&finding.cause),
        Cell::Text(&finding.severity.to_string()),
        Cell::Text(provider),
        Cell::Id(&finding.scope.account),
        Cell::Text(&finding.scope.mode),
        Cell::Id(&finding.object_id),
        Cell::Id(&join_ids(finding.event_ids.iter().map(String::as_str), style)),
        Cell::Id(&join_ids(finding.effect_ids.iter().map(String::as_str), style)),
        Cell::Text(&finding.currency),
        minor(finding.expected_minor, ours),
        minor(finding.found_minor, theirs),
        minor(finding.difference_minor(), ours),
        Cell::Text(finding.expected_state.map_or("", Status::as_str)),
        Cell::Text(finding.found_state.map_or("", Status::as_str)),
        Cell::Time(&format_instant(finding.occurred_at_us, zone)),
        Cell::Time(&format_instant(row.first_seen_us, zone)),
        Cell::Count(row.age_days),
        Cell::Text(&row.standing.to_string()),
        Cell::Text(row.owner),
        Cell::Text(finding.action.as_str()),
        Cell::Text(&note(row, zone)),
    ])
}

fn note(row: &Row<'_>, zone: Tz) -> String {
    let finding = row.finding;
    let mut parts = Vec::new();
    if !finding.found_currency.is_empty() {
        parts.push(format!("found_minor is in {}.", finding.found_currency));
    }
    if let Some(Acceptance { by, reason, until_us, validity }) = row.acceptance {
        let until = format_instant(*until_us, zone);
        parts.push(match validity {
            Validity::InForce => format!("accepted by {by} until {until}: {reason}."),
            Validity::Ended => format!("the acceptance by {by} ended {until}."),
            Validity::Changed => format!("changed since {by} accepted it, so it counts again."),
        });
    }
    parts.push(finding.note.clone());
    parts.join(" ").trim_end().to_owned()
}
