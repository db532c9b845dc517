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
//! A person compares the stored bodies with the provider's own copy (dashboard, events, by the id), which decides; what was
//! booked for the other one is booked back ([how](on-call.md#4-undo)).

use super::{Action, Finding, Group, Kind};
use crate::record::{InboxEvent, Scope};
use std::collections::{BTreeMap, BTreeSet};

/// Among the events of this root: an event of another root that a row here names is found there.
pub(super) fn of_group(scope: &Scope, root_id: &str, group: &Group) -> Vec<Finding> {
    let own: BTreeSet<&str> = group
        .provider_events
        .iter()
        .filter(|event| event.root_id == root_id)
        .map(|event| event.event_id.as_str())
        .collect();
    let rows = group.inbox_events.iter().filter(|row| own.contains(row.event_id.as_str()));
    conflicting_events(scope, root_id, rows)
}

/// One finding for each id with more than one body.
pub fn conflicting_events<'a>(
    scope: &Scope,
    root_id: &str,
    rows: impl Iterator<Item = &'a InboxEvent>,
) -> Vec<Finding> {
    let mut bodies: BTreeMap<&str, (BTreeSet<&str>, i64)> = BTreeMap::new();
    for row in rows.filter(|row| !row.body_sha256.is_empty()) {
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
