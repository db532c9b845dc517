//! # What it flags
//! A type, enum value or field that is not understood; the path is named.
//!
//! # Why it matters
//! What is not understood must never count as processed, and never become an empty value.
//!
//! # Usual causes
//! A new API version, a new product of the provider.
//!
//! # What to do
//! A person opens the object at the provider, reads its changelog for the version that the note names, and looks whether a newer
//! `recon` knows the shape. Until then that payment is compared by hand.

use super::{Finding, Kind, Severity};
use crate::record::Note;

/// From a note that reading the record left.
pub(super) fn unknown_shape(note: &Note) -> Finding {
    Finding { severity: Severity::Minor, ..super::needs_review::noted(Kind::UnknownShape, note) }
}
