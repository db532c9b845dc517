//! # What it flags
//! A step that the object's life does not have: a payment set back to paid after its refund was booked
//! (cause `paid_after_refunded` and its siblings), or captures booked above the authorisation (cause
//! `capture_exceeds_authorisation`).
//!
//! # Why it matters
//! A refunded order is delivered again; a shop believes in money that it may not take.
//!
//! # Usual causes
//! A late retry of an old event overwrites a final status; each capture books the whole amount.
//!
//! # What to do
//! Apply the plan for statuses; mail, stock and other side effects of the wrong step are not repeated and
//! want a look. Captures are for a person.

use super::judge::StatusBreak;
use super::{Action, Finding, Kind, Unit};
use crate::record::{EffectKind, Status};

/// The effects were booked in order and the status went back afterwards.
pub(super) fn went_back(lag: &StatusBreak) -> Option<Finding> {
    let (state, expected) = (lag.state, lag.expected);
    if lag.swapped.is_some() || state.status > Status::Paid {
        return None;
    }
    let ending = match expected {
        Status::PartiallyRefunded | Status::Refunded => EffectKind::Refund,
        Status::Disputed | Status::DisputeLost => EffectKind::DisputeWithdrawn,
        _ => return None,
    };
    let ended = lag.units.iter().filter(|unit| unit.kind == ending && unit.has_local());
    let (last_us, last_id) = ended.filter_map(|unit| unit.booked.as_ref()).map(|[_, last]| last).max()?;
    if state.updated_at_us <= *last_us {
        return None;
    }
    Some(Finding {
        cause: format!("{}_after_{expected}", state.status),
        effect_ids: vec![last_id.clone()],
        action: Action::SetState,
        note: format!("{last_id} was booked, and then the status was set back to {}", state.status),
        ..lag.finding(Kind::ForbiddenTransition)
    })
}

/// Several captures are booked and together exceed what was authorised.
pub(super) fn capture_exceeds_authorisation(unit: &Unit) -> Option<Finding> {
    let authorized = unit.authorized_minor?;
    if unit.lines < 2 || unit.found_minor() <= authorized {
        return None;
    }
    Some(Finding {
        cause: "capture_exceeds_authorisation".to_owned(),
        action: Action::Review,
        note: format!("captures of {} are booked on an authorisation of {authorized}", unit.found_minor()),
        ..Finding::on_unit(Kind::ForbiddenTransition, unit)
    })
}
