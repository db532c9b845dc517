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
//! A person moves the booking; the finding names the row and both objects: book the row of `effect_ids` back
//! ([how](on-call.md#4-undo)) and book the same amount on `object_id`. In tables of your own, correct the id that the row carries.

use super::{Action, Finding, Kind, Unit};

/// Rows elsewhere name this unit's events, and something is left of them.
pub(super) fn misattributed_effect(unit: &Unit) -> Option<Finding> {
    if unit.elsewhere_totals.is_empty() {
        return None;
    }
    let first = unit.elsewhere.iter().min_by_key(|row| (row.applied_at_us, &row.effect_id))?;
    let elsewhere = unit.elsewhere_totals.get(unit.currency()).copied().unwrap_or(0);
    let rows = unit.elsewhere.iter().map(|row| row.effect_id.clone());
    let mut event_ids: Vec<String> =
        unit.elsewhere.iter().map(|row| row.event_id.clone()).filter(|id| !id.is_empty()).collect();
    event_ids.sort();
    event_ids.dedup();
    Some(Finding {
        event_ids,
        effect_ids: rows.chain(unit.rows.iter().map(|row| row.effect_id.clone())).collect(),
        found_minor: Some(unit.found_minor() + elsewhere),
        action: Action::Review,
        note: format!(
            "row {} names an event of {} and is booked on {}",
            first.effect_id, unit.object_id, first.object_id
        ),
        ..Finding::on_unit(Kind::MisattributedEffect, unit)
    })
}
