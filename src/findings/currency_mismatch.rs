//! # What it flags
//! The same effect booked in another currency, even where the number is equal.
//!
//! # Why it matters
//! 9000 yen are not 9000 dollars, and every total that holds the row is wrong.
//!
//! # Usual causes
//! The number of the presentment currency stored under the label of the settlement currency.
//!
//! # What to do
//! A person decides; both currencies and both amounts stand in the note.

use super::{Action, Finding, Kind, Unit};

/// Both sides have the unit and a currency of one side is not the other's. What is booked in the right
/// currency is taken off the expected amount first, so that the difference is what is still missing there.
pub(super) fn currency_mismatch(unit: &Unit) -> Option<Finding> {
    if unit.totals.len() < 2 {
        return None;
    }
    let currency = unit.currency();
    let (expected, right) = (unit.expected_minor(), unit.found_minor());
    let other = unit.totals.iter().find(|(found, (_, local))| *found != currency && *local != 0);
    let (found_currency, found) = other.map_or(("", 0), |(found, (_, local))| (found.as_str(), *local));
    let also = if right == 0 { String::new() } else { format!("{right} {currency} and ") };
    Some(Finding {
        found_currency: found_currency.to_owned(),
        expected_minor: Some(expected - right),
        found_minor: Some(found),
        action: Action::Review,
        note: format!(
            "the provider has {expected} {currency}, the books have {also}{found} {found_currency}"
        ),
        ..Finding::on_unit(Kind::CurrencyMismatch, unit)
    })
}
