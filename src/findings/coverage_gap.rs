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
use std::collections::{BTreeMap, BTreeSet};

/// Ranges that were not seen (scope, stream, first and last instant in Unix µs, cause): one finding for each
/// stream, with all of its causes joined by `|`.
#[must_use]
pub fn coverage_gaps(gaps: &[(Scope, String, i64, i64, String)]) -> Vec<Finding> {
    let mut streams: BTreeMap<(&Scope, &str), (i64, usize, BTreeSet<&str>)> = BTreeMap::new();
    for (scope, stream, from_us, _, cause) in gaps {
        let (first_us, ranges, causes) =
            streams.entry((scope, stream)).or_insert((*from_us, 0, BTreeSet::new()));
        *first_us = (*first_us).min(*from_us);
        *ranges += 1;
        causes.insert(cause);
    }
    streams
        .into_iter()
        .map(|((scope, stream), (from_us, ranges, causes))| Finding {
            cause: causes.into_iter().collect::<Vec<_>>().join("|"),
            action: Action::None,
            note: format!("{stream} was not seen completely, {ranges} range(s); see coverage.csv"),
            ..Finding::on_object(Kind::CoverageGap, scope, stream, stream, from_us)
        })
        .collect()
}
