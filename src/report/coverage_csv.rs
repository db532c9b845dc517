//! `coverage.csv`: what part of the window the run can prove that it has seen. A row that says `gap`
//! makes the run incomplete; one that says `not_listed` names a list that reaches back less far
//! than the window, and other streams stand in for it.

use super::cell::{Cell, Column, Holds, Style};
use super::sheet::Sheet;
use crate::gather::Coverage;
use crate::record::format_instant;
use anyhow::Result;
use chrono_tz::Tz;

/// Columns of `coverage.csv`.
pub const COLUMNS: [Column; 11] = [
    Column::new("provider", Holds::Text),
    Column::new("account", Holds::Id),
    Column::new("mode", Holds::Text),
    Column::new("stream", Holds::Text),
    Column::new("from", Holds::Time),
    Column::new("until", Holds::Time),
    Column::new("status", Holds::Text),
    Column::new("cause", Holds::Text),
    Column::new("slices", Holds::Count),
    Column::new("pages", Holds::Count),
    Column::new("records", Holds::Count),
];

/// The file's bytes and row count, by (scope, stream, from).
///
/// # Errors
/// When the CSV writer refuses.
pub fn render(rows: &[Coverage], style: Style, zone: Tz) -> Result<(Vec<u8>, u64)> {
    let mut sorted: Vec<&Coverage> = rows.iter().collect();
    sorted.sort();
    let mut sheet = Sheet::new(style, &COLUMNS)?;
    for row in sorted {
        sheet.push(&[
            Cell::Text(&row.scope.provider),
            Cell::Id(&row.scope.account),
            Cell::Text(&row.scope.mode),
            Cell::Text(&row.stream),
            Cell::Time(&format_instant(row.from_us, zone)),
            Cell::Time(&format_instant(row.until_us, zone)),
            Cell::Text(row.status.as_str()),
            Cell::Text(&row.cause),
            Cell::Count(row.slices),
            Cell::Count(row.pages),
            Cell::Count(row.records),
        ])?;
    }
    sheet.finish()
}
