//! # What it flags
//! An event in the inbox, received inside the range that was listed, that the provider does not know. One whose body says
//! that it was made before the provider's list begins (30 days) is not judged: `counted.not_judged` in `manifest.json`.
//!
//! # Why it matters
//! Either somebody else can write to the inbox, or it belongs to another account.
//!
//! # Usual causes
//! A signature check that is off, an endpoint shared between accounts, hand-made test events.
//!
//! # What to do
//! A person looks at where it came from (`inbox_event`: when it was received, and whether its signature was checked) before
//! anything that it caused is believed. What was booked for it is booked back ([how](on-call.md#4-undo)).

use super::{Action, Finding, Kind};
use crate::record::InboxEvent;

/// The provider was asked for the id and does not know it.
#[must_use]
pub fn unknown_event(event: &InboxEvent) -> Finding {
    Finding {
        event_ids: vec![event.event_id.clone()],
        action: Action::Review,
        note: format!("the inbox has {} and the provider does not know it", event.event_type),
        ..Finding::on_object(
            Kind::UnknownEvent,
            &event.scope,
            &event.event_id,
            &event.event_id,
            event.received_at_us,
        )
    }
}
