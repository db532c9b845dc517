//! # What it flags
//! One business fact booked more than once. The rows are named with the kept (earliest) one first; the
//! difference is the excess.
//!
//! # Why it matters
//! A customer's balance is too high by the excess, or a refund was booked twice.
//!
//! # Usual causes
//! The provider delivered twice and the guard had expired; two event types of one payment each book it;
//! read-then-insert lost a race; a backfill used another key than the live path.
//!
//! # What to do
//! Apply the plan: every excess row gets a compensating entry. Nothing is deleted. Then add the unique
//! effect key to the handler.

use super::{Action, Finding, Kind, Row, Unit};
use std::collections::BTreeSet;

/// More is booked than the provider has, and leaving out repeated rows makes it equal.
pub(super) fn duplicate_effect(unit: &Unit) -> Option<Finding> {
    let excess = excess_rows(&unit.rows, unit.expected_minor())?;
    let (kept, doubled): (Vec<&Row>, Vec<&Row>) =
        unit.rows.iter().partition(|row| !excess.contains(row.effect_id.as_str()));
    let mut event_ids: Vec<String> =
        unit.rows.iter().map(|row| row.event_id.clone()).filter(|id| !id.is_empty()).collect();
    event_ids.sort();
    event_ids.dedup();
    Some(Finding {
        effect_ids: kept.iter().chain(&doubled).map(|row| row.effect_id.clone()).collect(),
        event_ids,
        action: Action::ReverseEntry,
        note: format!("booked {} times; kept {}", unit.rows.len(), ids(&kept)),
        ..Finding::on_unit(Kind::DuplicateEffect, unit)
    })
}

fn ids(rows: &[&Row]) -> String {
    rows.iter().map(|row| row.effect_id.as_str()).collect::<Vec<_>>().join(", ")
}

/// The rows that are too many, if there is a reading under which the rest is exactly right:
/// first every row that repeats the amount of an earlier one, else every row after the point where
/// the running total is right.
fn excess_rows(rows: &[Row], expected_minor: i64) -> Option<BTreeSet<&str>> {
    let total: i64 = rows.iter().map(|row| row.net_minor).sum();
    if rows.len() < 2 || total.abs() <= expected_minor.abs() {
        return None;
    }
    let mut seen = BTreeSet::new();
    let repeats: Vec<&Row> = rows.iter().filter(|row| !seen.insert(row.net_minor)).collect();
    let repeated: i64 = repeats.iter().map(|row| row.net_minor).sum();
    if !repeats.is_empty() && total - repeated == expected_minor {
        return Some(repeats.iter().map(|row| row.effect_id.as_str()).collect());
    }
    let mut running = 0;
    for (index, row) in rows.iter().enumerate() {
        running += row.net_minor;
        if running == expected_minor {
            return Some(rows[index + 1..].iter().map(|row| row.effect_id.as_str()).collect());
        }
    }
    None
}
