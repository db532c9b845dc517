//! # What it flags
//! An event that the inbox holds and whose effect is not booked. The cause says what the inbox claims:
//! `pending_too_long`, `dead_letter`, `parked`, or `marked_processed_without_effect`.
//!
//! # Why it matters
//! The provider was told that all is well and will never send it again; a mark such as "processed" is
//! not a booking.
//!
//! # Usual causes
//! The handler marks first and books later (or fails in between), a worker is stuck, an event waits for
//! another that never came.
//!
//! # What to do
//! Apply the plan: the stored event is replayed through the door. A dead letter also deserves a look
//! at its error. Where another payment of the same invoice has more than it should, the money may be booked
//! there, and a person decides.

use super::judge::{Context, StatusBreak};
use super::missed_event::StateEvents;
use super::{Action, Finding, Kind, Unit};
use crate::record::InboxStatus;

/// The unit's effect is not booked although an event of it is in the inbox.
pub(super) fn unapplied_effect(context: &Context, unit: &Unit) -> Option<Finding> {
    if !context.has_event_leg {
        return None;
    }
    let held = |status: InboxStatus| -> Vec<String> {
        let said =
            unit.announcements.iter().filter(|said| said.inbox.is_some_and(|(found, _)| found == status));
        said.map(|said| said.event.event_id.clone()).collect()
    };
    let is_missed = unit.announcements.iter().any(|said| said.inbox.is_none() && said.event.wanted);
    for (status, cause) in CAUSES {
        let is_evidence = !matches!(status, InboxStatus::Superseded | InboxStatus::Ignored);
        let event_ids = held(status);
        if !event_ids.is_empty() && (is_evidence || !is_missed) {
            return Some(Finding {
                cause: cause.to_owned(),
                event_ids,
                action: Action::ReplayEvent,
                note: format!(
                    "the inbox has the event as `{}` and the books do not have its effect",
                    status.as_str()
                ),
                ..Finding::on_unit(Kind::UnappliedEvent, unit)
            });
        }
    }
    None
}

/// What each inbox status means for an effect that is not there, the most telling first.
const CAUSES: [(InboxStatus, &str); 6] = [
    (InboxStatus::Dead, "dead_letter"),
    (InboxStatus::Parked, "parked"),
    (InboxStatus::Applied, "marked_processed_without_effect"),
    (InboxStatus::Received, "pending_too_long"),
    (InboxStatus::Superseded, "marked_processed_without_effect"),
    (InboxStatus::Ignored, "marked_processed_without_effect"),
];

/// A status lags because the event that brings it lies unprocessed in the inbox.
pub(super) fn unapplied_state(lag: &StatusBreak, events: &StateEvents) -> Option<Finding> {
    let stuck = [InboxStatus::Dead, InboxStatus::Parked, InboxStatus::Received];
    let (status, cause) = CAUSES
        .into_iter()
        .filter(|(status, _)| stuck.contains(status))
        .find(|(status, _)| events.held.iter().any(|(_, held)| held == status))?;
    let held = events.held.iter().filter(|(_, found)| *found == status);
    Some(Finding {
        cause: cause.to_owned(),
        event_ids: held.map(|(event_id, _)| event_id.clone()).collect(),
        action: Action::SetState,
        note: format!("the event that brings this status lies in the inbox as `{}`", status.as_str()),
        ..lag.finding(Kind::UnappliedEvent)
    })
}
