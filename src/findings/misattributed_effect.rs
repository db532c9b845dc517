//! # What it flags
//! A local row that names the event of one object and is booked on another. It is never reported as one
//! missing effect plus one orphan.
//!
//! # Why it matters
//! The totals agree and two customers' balances are both wrong.
//!
//! # Usual causes
//! A handler that reads the customer or order from the wrong field, a shared session, a hand-made booking.
//!
//! # What to do
//! A person moves the booking; the finding names the row and both objects.

use super::{Action, Finding, Kind, Unit};

/// Rows elsewhere name this unit's events.
pub(super) fn misattributed_effect(unit: &Unit) -> Option<Finding> {
    let first = unit.booked_elsewhere.first()?;
    let elsewhere: i64 = unit.booked_elsewhere.iter().map(|row| row.kind.sign() * row.amount_minor).sum();
    let mut in_window = unit.in_window.clone();
    for row in unit.booked_elsewhere.iter().filter(|row| row.in_window) {
        in_window.entry(row.currency.clone()).or_default().1 += row.kind.sign() * row.amount_minor;
    }
    let explains = in_window
        .into_iter()
        .map(|(currency, (provider, local))| (currency, provider - local))
        .filter(|(_, difference)| *difference != 0)
        .collect();
    let rows = unit.booked_elsewhere.iter().map(|row| row.effect_id.clone());
    let mut event_ids: Vec<String> = unit.booked_elsewhere.iter().map(|row| row.event_id.clone()).collect();
    event_ids.sort();
    event_ids.dedup();
    Some(Finding {
        event_ids,
        effect_ids: rows.chain(unit.rows.iter().map(|row| row.effect_id.clone())).collect(),
        found_minor: Some(unit.found_minor() + elsewhere),
        explains,
        action: Action::Review,
        note: format!(
            "row {} names an event of {} and is booked on {}",
            first.effect_id, unit.object_id, first.object_id
        ),
        ..Finding::on_unit(Kind::MisattributedEffect, unit)
    })
}
