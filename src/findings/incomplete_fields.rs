//! # What it flags
//! A record that was stored before a late field (fee, exchange rate) existed.
//!
//! # Why it matters
//! A total that leaves it out would be wrong by exactly that.
//!
//! # Usual causes
//! Delayed capture, a payment method whose fee is known days later.
//!
//! # What to do
//! Run again later; the object is read anew.

use super::{Finding, Kind, Severity};
use crate::record::Note;

/// From a note that reading the record left.
pub(super) fn incomplete_fields(note: &Note) -> Finding {
    Finding { severity: Severity::Minor, ..super::needs_review::noted(Kind::IncompleteFields, note) }
}
