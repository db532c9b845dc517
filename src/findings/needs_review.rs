//! # What it flags
//! Something ambiguous, with both readings in the note: a dispute that is won without the money coming
//! back, a manual change that is newer than the provider's word, a local status ahead of the provider, a status
//! of an invoice whose payments stand differently (cause `payments_differ`). With cause `not_asked_whole`: something
//! that would have been corrected, on a payment of which the provider was not asked for everything (offline, or
//! beyond `[limits] ask_count_max`); the note says what it looks like. With cause `not_booked_status`: something that would
//! have been booked, and for which a row stands in your tables with a status that `effects.sql` leaves out (`pending`);
//! `effect_ids` names the row.
//!
//! # Why it matters
//! A guess with confidence is worse than a question.
//!
//! # Usual causes
//! An operator's decision, a process outside of the provider, a half-finished change at the provider.
//!
//! # What to do
//! A person opens the object at the provider beside the local rows of the same id; `cause` and the note say what is odd.
//! It is never corrected automatically; a booking that is wrong is booked back ([how](on-call.md#4-undo)).
//! For `not_asked_whole` run again online, with a higher `ask_count_max`.
//! For `not_booked_status` put that row right; never book a second one beside it. A statement of yours may do that
//! ([how](targets.md#a-row-that-is-there-with-another-status)).

use super::judge::StatusBreak;
use super::{Action, Finding, Kind, Severity};
use crate::record::{LocalState, Note, Scope};

/// A finding from a note, with its cause, events and text.
pub(super) fn noted(kind: Kind, note: &Note) -> Finding {
    Finding {
        cause: note.cause.clone(),
        event_ids: note.event_ids.clone(),
        action: Action::Review,
        note: note.text.clone(),
        ..Finding::on_object(kind, &note.scope, &note.root_id, &note.object_id, note.at_us)
    }
}

/// The provider's record contradicts itself.
pub(super) fn from_note(note: &Note) -> Finding {
    noted(Kind::NeedsReview, note)
}

/// A person changed the status after the provider's last word.
pub(super) fn manual_override(lag: &StatusBreak) -> Finding {
    Finding {
        cause: "manual_override".to_owned(),
        note: format!("the provider says {}, an operator set {} later", lag.expected, lag.state.status),
        ..lag.finding(Kind::NeedsReview)
    }
}

/// The payments of one invoice have statuses that do not make one, and the invoice's local one is not the
/// highest of them.
pub(super) fn payments_differ(lag: &StatusBreak) -> Finding {
    Finding {
        cause: "payments_differ".to_owned(),
        note: format!(
            "the payments of the invoice stand differently, the furthest at {}; the books say {}",
            lag.expected, lag.state.status
        ),
        ..lag.finding(Kind::NeedsReview)
    }
}

/// The local status is ahead of the provider's and no known way leads back.
pub(super) fn local_ahead(lag: &StatusBreak) -> Finding {
    Finding {
        cause: "local_ahead".to_owned(),
        note: format!("the books say {}, the provider only {}", lag.state.status, lag.expected),
        ..lag.finding(Kind::NeedsReview)
    }
}

/// A local status row for an object that the provider does not know.
pub(super) fn unknown_object(scope: &Scope, root_id: &str, state: &LocalState) -> Finding {
    Finding {
        severity: Severity::Minor,
        note: "a local status for an object that the provider does not know".to_owned(),
        cause: "object_unknown".to_owned(),
        found_state: Some(state.status),
        ..Finding::on_object(Kind::NeedsReview, scope, root_id, &state.object_id, state.updated_at_us)
    }
}
