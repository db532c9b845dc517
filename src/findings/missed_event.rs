//! # What it flags
//! An event that the provider has and the inbox does not, although its retries are over (or it was
//! acknowledged), and what it stands for is not booked. Several events of one effect that are missing
//! together are one finding that lists them. With cause `not_subscribed` only event types that the
//! endpoint does not listen to announce the effect; with cause `consequence_unknown` the event moves
//! nothing that the books hold, so nobody can tell whether its absence matters.
//!
//! # Why it matters
//! A payment that nobody booked: the customer paid and did not get what they paid for, or a refund
//! still counts as revenue.
//!
//! # Usual causes
//! The endpoint was down longer than the provider retries, answered 2xx and lost the event, was
//! disabled, or listens to a sibling of the type that carries the money.
//!
//! # What to do
//! Apply the plan: the event is fetched and replayed through the same door as a live one, under its own
//! identity and time. For `not_subscribed` also add the type to the endpoint.

use super::judge::{Context, StatusBreak};
use super::{Action, Finding, Group, Kind, Severity, Unit};
use crate::record::{InboxStatus, ProviderEvent, Tracks};

/// The unit's effect is not booked and no event of it is in the inbox.
pub(super) fn missed_effect(context: &Context, unit: &Unit) -> Option<Finding> {
    if !context.has_event_leg || unit.announcements.is_empty() {
        return None;
    }
    let ids = |wanted: bool| -> Vec<String> {
        let events =
            unit.announcements.iter().filter(|said| said.inbox.is_none() && said.event.wanted == wanted);
        events.map(|said| said.event.event_id.clone()).collect()
    };
    let (missed, unsubscribed) = (ids(true), ids(false));
    let (cause, event_ids, note) = if missed.is_empty() {
        ("not_subscribed", unsubscribed, "the endpoint does not listen to the event types that announce it")
    } else {
        ("", missed, "the provider has the event and the inbox never got it")
    };
    Some(Finding {
        cause: cause.to_owned(),
        event_ids,
        action: Action::ReplayEvent,
        note: note.to_owned(),
        ..Finding::on_unit(Kind::MissedEvent, unit)
    })
}

/// The status events of a group that nothing newer in the inbox has overtaken.
pub(super) struct StateEvents {
    missing: Vec<String>,
    /// Events that the inbox holds, with what it says of them.
    pub(super) held: Vec<(String, InboxStatus)>,
    /// Whether the provider still retries the newest one.
    pub(super) is_in_flight: bool,
}

impl StateEvents {
    /// Looks at the group's status events in the window.
    pub(super) fn of(context: &Context, group: &Group, root_id: &str) -> Self {
        let mut found = Self { missing: Vec::new(), held: Vec::new(), is_in_flight: false };
        if !context.has_event_leg {
            return found;
        }
        let inbox = group.inbox();
        let said = |event: &ProviderEvent| inbox.get(event.event_id.as_str()).copied();
        let own = || group.provider_events.iter().filter(|event| event.root_id == root_id);
        let newest_held = own().filter(|event| said(event).is_some()).map(|event| event.created_us).max();
        for event in own().filter(|event| event.tracks == Tracks::State && event.wanted) {
            let is_overtaken = newest_held.is_some_and(|held_us| held_us > event.created_us);
            if is_overtaken || !context.window.contains(event.created_us) {
                continue;
            }
            match said(event) {
                Some((InboxStatus::Received, at_us)) if at_us > context.pending_since_us => {
                    found.is_in_flight = true;
                }
                Some((status, _)) => found.held.push((event.event_id.clone(), status)),
                None if event.settled => found.missing.push(event.event_id.clone()),
                None => found.is_in_flight = true,
            }
        }
        found.missing.sort();
        found
    }
}

/// A status lags and the event that would have brought it is not in the inbox.
pub(super) fn missed_state(lag: &StatusBreak, events: &StateEvents) -> Option<Finding> {
    if events.missing.is_empty() {
        return None;
    }
    Some(Finding {
        event_ids: events.missing.clone(),
        action: Action::SetState,
        note: "the event that brings this status never came".to_owned(),
        ..lag.finding(Kind::MissedEvent)
    })
}

/// A wanted event is not in the inbox and what it stands for cannot be looked up.
pub(super) fn missed_other(event: &ProviderEvent, root_id: &str) -> Finding {
    let object_id = if event.object_id.is_empty() { &event.event_id } else { &event.object_id };
    Finding {
        cause: "consequence_unknown".to_owned(),
        severity: Severity::Minor,
        event_ids: vec![event.event_id.clone()],
        note: format!("{} never came; the books hold nothing to check it by", event.event_type),
        ..Finding::on_object(Kind::MissedEvent, &event.scope, root_id, object_id, event.created_us)
    }
}
