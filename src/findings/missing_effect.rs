//! # What it flags
//! Money that moved at the provider, with no event that could still bring it and no local effect.
//!
//! # Why it matters
//! Nothing will ever put this right by itself: the event is older than the provider's memory, or never
//! existed.
//!
//! # Usual causes
//! An outage longer ago than the provider keeps events (Stripe: 30 days), a refund made in the
//! provider's dashboard for a type that sends no event, a gap in a migration.
//!
//! # What to do
//! Apply the plan: the effect is booked under its effect key, dated when the money moved.

use super::{Action, Finding, Kind, Unit};

/// The unit's effect is not booked and nothing announces it.
pub(super) fn missing_effect(unit: &Unit) -> Finding {
    Finding {
        event_ids: Vec::new(),
        action: Action::ApplyEffect,
        note: "the provider has it, no event brings it any more, and the books do not have it".to_owned(),
        ..Finding::on_unit(Kind::MissingEffect, unit)
    }
}
