//! # What it flags
//! An effect that both sides have, with the provider's date on one side of the cut-off and the booking's
//! date on the other. It is expected to clear in the next window, and does not make a run a failure.
//!
//! # Why it matters
//! It explains a difference between two totals that is nobody's mistake.
//!
//! # Usual causes
//! A payment seconds before midnight booked seconds after it; a correction booked this month for a payment
//! of last month.
//!
//! # What to do
//! Nothing. Finance lists it as a reconciling item of the period.

use super::judge::Context;
use super::{Action, Finding, Kind, Severity, Unit};

/// The totals over all time agree and those inside the window do not.
pub(super) fn timing_difference(context: &Context, unit: &Unit) -> Option<Finding> {
    let explains = unit.explains();
    let (currency, _) = explains.first().filter(|_| unit.is_agreed())?;
    let (provider, local) = unit.in_window.get(currency).copied().unwrap_or_default();
    let booked_at_us = unit.booked.as_ref().map_or(0, |[_, (last_us, _)]| *last_us);
    let side = if booked_at_us >= context.window.until_us {
        "booked after the cut-off"
    } else {
        "of another period"
    };
    Some(Finding {
        cause: "cut_off".to_owned(),
        severity: Severity::Info,
        currency: currency.clone(),
        expected_minor: Some(provider),
        found_minor: Some(local),
        explains: explains.clone(),
        action: Action::None,
        note: format!("both sides have it; {side}"),
        ..Finding::on_unit(Kind::TimingDifference, unit)
    })
}
