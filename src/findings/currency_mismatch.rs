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

/// A row of the unit is in another currency than the provider's effect.
pub(super) fn currency_mismatch(unit: &Unit) -> Option<Finding> {
    let expected = unit.provider.first()?;
    let other = unit.rows.iter().filter(|row| row.currency != expected.currency);
    let found_currency = other.clone().map(|row| row.currency.as_str()).min()?;
    let found: i64 = other.filter(|row| row.currency == found_currency).map(|row| row.net_minor).sum();
    Some(Finding {
        found_currency: found_currency.to_owned(),
        found_minor: Some(found),
        action: Action::Review,
        note: format!(
            "the provider has {} {}, the books have {found} {found_currency}",
            unit.expected_minor(),
            expected.currency
        ),
        ..Finding::on_unit(Kind::CurrencyMismatch, unit)
    })
}
