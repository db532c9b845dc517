//! # What it flags
//! One event id with two different bodies.
//!
//! # Why it matters
//! An event never changes at the provider; one of the bodies is not the provider's.
//!
//! # Usual causes
//! A body that was parsed and written again before it was stored; a forgery.
//!
//! # What to do
//! A person compares the bodies; the provider's own copy decides.

use super::{Action, Finding, Kind};
use crate::record::{InboxEvent, Scope};
use std::collections::{BTreeMap, BTreeSet};

/// One finding for each id with more than one body.
#[must_use]
pub fn conflicting_events(scope: &Scope, root_id: &str, rows: &[InboxEvent]) -> Vec<Finding> {
    let mut bodies: BTreeMap<&str, (BTreeSet<&str>, i64)> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.body_sha256.is_empty()) {
        let (hashes, at_us) = bodies.entry(&row.event_id).or_insert((BTreeSet::new(), row.received_at_us));
        hashes.insert(&row.body_sha256);
        *at_us = (*at_us).min(row.received_at_us);
    }
    bodies
        .into_iter()
        .filter(|(_, (hashes, _))| hashes.len() > 1)
        .map(|(event_id, (hashes, at_us))| Finding {
            event_ids: vec![event_id.to_owned()],
            action: Action::Review,
            note: format!("{} different bodies under one event id", hashes.len()),
            ..Finding::on_object(Kind::ConflictingEvent, scope, root_id, event_id, at_us)
        })
        .collect()
}
