//! `inbox_health.csv`: how the receiving side is doing, one row for each scope. What waits or is dead is counted
//! as of now, whenever it was received; everything else is of the run's window. A jump in
//! `duplicates_dropped` is a latency alarm: the provider gives up waiting and sends again.

use super::cell::{Cell, Column, Holds, Style};
use super::sheet::Sheet;
use crate::record::{InboxStatus, Scope, format_instant};
use anyhow::Result;
use chrono_tz::Tz;
use std::collections::BTreeMap;

/// Columns of `inbox_health.csv`.
pub const COLUMNS: [Column; 18] = [
    Column::new("provider", Holds::Text),
    Column::new("account", Holds::Id),
    Column::new("mode", Holds::Text),
    Column::new("received", Holds::Count),
    Column::new("applied", Holds::Count),
    Column::new("superseded", Holds::Count),
    Column::new("ignored", Holds::Count),
    Column::new("parked", Holds::Count),
    Column::new("dead", Holds::Count),
    Column::new("duplicates_dropped", Holds::Count),
    Column::new("conflicting_deliveries", Holds::Count),
    Column::new("refused_deliveries", Holds::Count),
    Column::new("waiting_age_seconds_max", Holds::Count),
    Column::new("waiting_above_age", Holds::Count),
    Column::new("oldest_waiting_at", Holds::Time),
    Column::new("completion_mean_ms", Holds::Count),
    Column::new("completion_p99_ms", Holds::Count),
    Column::new("completion_slowest_ms", Holds::Count),
];

/// The inbox of one scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InboxHealth {
    /// Scope.
    pub scope: Scope,
    /// Events by status: those that ended, of the run's window by first receipt; `received`, `parked` and `dead`, all.
    pub events: BTreeMap<InboxStatus, u64>,
    /// Deliveries beyond the first of each event of the window.
    pub duplicates_dropped: u64,
    /// Deliveries in the window of other bytes under a known event's id; kept, never applied.
    pub conflicting_deliveries: u64,
    /// Deliveries refused on the UTC days that the window touches. Nothing of them is believed, so they count at
    /// their endpoint's platform account.
    pub refused_deliveries: u64,
    /// The age from which a waiting event counts below, seconds.
    pub waiting_age_seconds_max: u64,
    /// Events `received` or `parked` that are older than that.
    pub waiting_above_age: u64,
    /// First receipt of the oldest `received` or `parked` event, Unix µs; `None` where none waits.
    pub oldest_waiting_us: Option<i64>,
    /// Mean time from first receipt to the end, ms, of the window's events that ended by themselves; `None` where
    /// none did.
    pub completion_mean_ms: Option<u64>,
    /// The time that 99 of a hundred did not exceed, ms.
    pub completion_p99_ms: Option<u64>,
    /// Longest such time, ms.
    pub completion_slowest_ms: Option<u64>,
}

/// The file's bytes and row count, by scope.
///
/// # Errors
/// When the CSV writer refuses.
pub fn render(rows: &[InboxHealth], style: Style, zone: Tz) -> Result<(Vec<u8>, u64)> {
    let mut sorted: Vec<&InboxHealth> = rows.iter().collect();
    sorted.sort();
    let mut sheet = Sheet::new(style, &COLUMNS)?;
    for row in sorted {
        let oldest = row.oldest_waiting_us.map(|at_us| format_instant(at_us, zone));
        let mut cells =
            vec![Cell::Text(&row.scope.provider), Cell::Id(&row.scope.account), Cell::Text(&row.scope.mode)];
        let counts = InboxStatus::ALL.map(|status| row.events.get(&status).copied().unwrap_or(0));
        cells.extend(counts.map(Cell::Count));
        cells.extend([
            Cell::Count(row.duplicates_dropped),
            Cell::Count(row.conflicting_deliveries),
            Cell::Count(row.refused_deliveries),
            Cell::Count(row.waiting_age_seconds_max),
            Cell::Count(row.waiting_above_age),
            oldest.as_deref().map_or(Cell::Empty, Cell::Time),
            row.completion_mean_ms.map_or(Cell::Empty, Cell::Count),
            row.completion_p99_ms.map_or(Cell::Empty, Cell::Count),
            row.completion_slowest_ms.map_or(Cell::Empty, Cell::Count),
        ]);
        sheet.push(&cells)?;
    }
    sheet.finish()
}
