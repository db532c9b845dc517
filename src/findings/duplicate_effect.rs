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
    let excess = excess_rows(&unit.rows, unit.expected_minor(), unit.found_minor())?;
    let rows = || unit.rows.iter().enumerate();
    let kept: Vec<&Row> = rows().filter(|(index, _)| !excess.contains(index)).map(|(_, row)| row).collect();
    let doubled: Vec<&Row> = rows().filter(|(index, _)| excess.contains(index)).map(|(_, row)| row).collect();
    let mut event_ids: Vec<String> =
        unit.rows.iter().map(|row| row.event_id.clone()).filter(|id| !id.is_empty()).collect();
    event_ids.sort();
    event_ids.dedup();
    let named: BTreeSet<&str> = unit.rows.iter().map(|row| row.effect_id.as_str()).collect();
    let is_reversible =
        named.len() == unit.rows.len() && doubled.iter().all(|row| row.net_minor == row.booked_minor);
    Some(Finding {
        effect_ids: kept.iter().take(1).chain(&doubled).map(|row| row.effect_id.clone()).collect(),
        event_ids,
        action: if is_reversible { Action::ReverseEntry } else { Action::Review },
        note: format!("booked {} times; kept {}", unit.rows.len(), ids(&kept)),
        ..Finding::on_unit(Kind::DuplicateEffect, unit)
    })
}

fn ids(rows: &[&Row]) -> String {
    rows.iter().map(|row| row.effect_id.as_str()).collect::<Vec<_>>().join(", ")
}

/// The rows that are too many, if there is a reading under which the rest is exactly right and what is
/// left out repeats what is kept. First reading: every row that repeats the amount of an earlier one.
/// Second: every row after the point where the running total is right, if each of them repeats the
/// amount of a kept row or the whole amount, or if all of them together are the whole amount again.
fn excess_rows(rows: &[Row], expected_minor: i64, found_minor: i64) -> Option<BTreeSet<usize>> {
    if rows.len() < 2 || found_minor.unsigned_abs() <= expected_minor.unsigned_abs() {
        return None;
    }
    let mut seen = BTreeSet::new();
    let repeats: BTreeSet<usize> =
        (0..rows.len()).filter(|index| !seen.insert(rows[*index].net_minor)).collect();
    let repeated: i64 = repeats.iter().map(|index| rows[*index].net_minor).sum();
    if !repeats.is_empty() && found_minor - repeated == expected_minor {
        return Some(repeats);
    }
    let mut running = 0;
    let right = rows.iter().position(|row| {
        running += row.net_minor;
        running == expected_minor
    })?;
    let (kept, excess) = rows.split_at(right + 1);
    let known: BTreeSet<i64> = kept.iter().map(|row| row.net_minor).chain([expected_minor]).collect();
    let is_whole_again = found_minor - expected_minor == expected_minor;
    let repeats = is_whole_again || excess.iter().all(|row| known.contains(&row.net_minor));
    repeats.then(|| (right + 1..rows.len()).collect())
}
