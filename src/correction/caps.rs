//! Caps: a plan larger than anyone expected stops before its first write.
//!
//! Money counts by magnitude, so that a credit and a reversal of the same size do not hide each
//! other. A currency without a cap stops the plan too: silence is not permission to move money.

use super::Correction;
use crate::config::CorrectionSettings;
use std::collections::BTreeMap;
use thiserror::Error;

/// The cap that a plan exceeds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CapError {
    /// Too many rows.
    #[error("the plan has {rows} rows, more than `corrections.count_max` = {count_max}")]
    Rows {
        /// Rows of the plan.
        rows: u64,
        /// The cap.
        count_max: u64,
    },
    /// Too much money in one currency.
    #[error(
        "the plan moves {moved_minor} minor units of {currency}, more than `corrections.minor_max.{currency}` = {minor_max}"
    )]
    Money {
        /// The currency.
        currency: String,
        /// Sum of magnitudes, minor units.
        moved_minor: i128,
        /// The cap, minor units.
        minor_max: i64,
    },
    /// Money in a currency for which nobody set a cap.
    #[error(
        "the plan moves {moved_minor} minor units of {currency}, and `corrections.minor_max` names no cap for {currency}"
    )]
    NoCap {
        /// The currency.
        currency: String,
        /// Sum of magnitudes, minor units.
        moved_minor: i128,
    },
}

/// Checks a plan against the configured caps.
///
/// # Errors
/// The first cap that it exceeds: rows, then currencies in alphabetical order.
pub fn check_caps(corrections: &[Correction], settings: &CorrectionSettings) -> Result<(), CapError> {
    let rows = u64::try_from(corrections.len()).unwrap_or(u64::MAX);
    if rows > settings.count_max {
        return Err(CapError::Rows { rows, count_max: settings.count_max });
    }
    let mut moved: BTreeMap<&str, i128> = BTreeMap::new();
    for correction in corrections.iter().filter(|correction| correction.amount_minor != 0) {
        // 2^63 magnitudes in 127 bits: no number of rows that fits in memory overflows this.
        *moved.entry(&correction.currency).or_default() += i128::from(correction.amount_minor).abs();
    }
    for (currency, moved_minor) in moved {
        let currency = currency.to_owned();
        match settings.minor_max.get(&currency) {
            Some(cap) if moved_minor <= i128::from(*cap) => {}
            Some(cap) => return Err(CapError::Money { currency, moved_minor, minor_max: *cap }),
            None => return Err(CapError::NoCap { currency, moved_minor }),
        }
    }
    Ok(())
}
