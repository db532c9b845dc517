//! # What it flags
//! A range that the run cannot prove it saw; the cause says why (`cursor_lost`, `provider_empty`,
//! `no_permission`, `endpoint_disabled`, …). The run is incomplete and its watermark does not move.
//!
//! # Why it matters
//! Silence is never "clean".
//!
//! # Usual causes
//! A list that ended early, a key without permission for one list, an endpoint that the provider switched
//! off.
//!
//! # What to do
//! Mend the cause and run the same window again.

use super::{Action, Finding, Kind};
use crate::record::Scope;

/// A range that was not seen: scope, stream, first and last instant (Unix µs), cause.
#[must_use]
pub fn coverage_gaps(gaps: &[(Scope, String, i64, i64, String)]) -> Vec<Finding> {
    gaps.iter()
        .map(|(scope, stream, from_us, _, cause)| Finding {
            cause: cause.clone(),
            action: Action::None,
            note: format!("{stream} was not seen completely; see coverage.csv"),
            ..Finding::on_object(Kind::CoverageGap, scope, stream, stream, *from_us)
        })
        .collect()
}
