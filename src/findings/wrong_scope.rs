//! # What it flags
//! A record of another account, mode or endpoint than configured: a test-mode event in the live inbox, a
//! row of an account that is not read.
//!
//! # Why it matters
//! Test money in live books, or another tenant's.
//!
//! # Usual causes
//! Providers send test events to live URLs in some set-ups; a key of the wrong mode; a shared endpoint.
//!
//! # What to do
//! A person compares the account and `livemode` of the event with the endpoint that it came through: a test endpoint or
//! another account points at this handler, or `mode` and `accounts` in `recon.toml` lack it. The record never counts and
//! never blocks a live one; what was booked for it is booked back ([how](on-call.md#4-undo)).

use super::{Action, Finding, Kind, Severity};
use crate::record::{Note, Scope};

/// A local row outside of the configured scopes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stray {
    /// The scope that the row names.
    pub scope: Scope,
    /// The event or object.
    pub object_id: String,
    /// Its event id, empty for effects and states.
    pub event_id: String,
    /// Its row id, empty for events and states.
    pub effect_id: String,
    /// When, Unix µs.
    pub at_us: i64,
}

/// A row names a scope that is not configured.
#[must_use]
pub fn wrong_scope(stray: &Stray) -> Finding {
    let named = |id: &String| if id.is_empty() { Vec::new() } else { vec![id.clone()] };
    Finding {
        severity: Severity::Minor,
        event_ids: named(&stray.event_id),
        effect_ids: named(&stray.effect_id),
        action: Action::Review,
        note: format!("account or mode {} is not configured", stray.scope),
        ..Finding::on_object(Kind::WrongScope, &stray.scope, &stray.object_id, &stray.object_id, stray.at_us)
    }
}

/// The provider's own record says that it belongs elsewhere.
pub(super) fn from_note(note: &Note) -> Finding {
    Finding { severity: Severity::Minor, ..super::needs_review::noted(Kind::WrongScope, note) }
}
