//! Findings: values that rules emit. One file per kind. Pure.
//!
//! Start at `judge.rs`: it is the order in which the rules are asked. `group.rs` is what they see.

pub mod doc;
pub mod life;
mod doubt;
mod finding;
mod group;
mod unit;
mod judge;
mod invoice;

mod amount_mismatch;
mod conflicting_event;
mod coverage_gap;
mod currency_mismatch;
mod duplicate_charge;
mod duplicate_effect;
mod forbidden_transition;
mod incomplete_fields;
mod misattributed_effect;
mod missed_event;
mod missing_effect;
mod needs_review;
mod orphan_effect;
mod stale_state;
mod timing_difference;
mod unapplied_event;
mod unknown_event;
mod unknown_shape;
mod wrong_scope;

pub use conflicting_event::conflicting_events;
pub use coverage_gap::coverage_gaps;
pub use doubt::loose_kinds;
pub use duplicate_charge::Intents;
pub use finding::{Action, Finding, Kind, Severity, Standing};
pub use group::Group;
pub use invoice::{join_purchase, restrain, share_out};
pub use judge::{Context, Counted, InFlight, Judgement, Unread, from_note, judge};
pub use unit::{Announcement, Row, Unit};
pub use unknown_event::unknown_event;
pub use wrong_scope::{Stray, wrong_scope};

/// The rules' own words: what `docs/findings.md` is made of.
pub const SOURCES: [(Kind, &str); 19] = [
    (Kind::MissedEvent, include_str!("missed_event.rs")),
    (Kind::UnappliedEvent, include_str!("unapplied_event.rs")),
    (Kind::MissingEffect, include_str!("missing_effect.rs")),
    (Kind::DuplicateEffect, include_str!("duplicate_effect.rs")),
    (Kind::DuplicateCharge, include_str!("duplicate_charge.rs")),
    (Kind::MisattributedEffect, include_str!("misattributed_effect.rs")),
    (Kind::OrphanEffect, include_str!("orphan_effect.rs")),
    (Kind::AmountMismatch, include_str!("amount_mismatch.rs")),
    (Kind::CurrencyMismatch, include_str!("currency_mismatch.rs")),
    (Kind::StaleState, include_str!("stale_state.rs")),
    (Kind::ForbiddenTransition, include_str!("forbidden_transition.rs")),
    (Kind::UnknownEvent, include_str!("unknown_event.rs")),
    (Kind::ConflictingEvent, include_str!("conflicting_event.rs")),
    (Kind::WrongScope, include_str!("wrong_scope.rs")),
    (Kind::UnknownShape, include_str!("unknown_shape.rs")),
    (Kind::IncompleteFields, include_str!("incomplete_fields.rs")),
    (Kind::TimingDifference, include_str!("timing_difference.rs")),
    (Kind::CoverageGap, include_str!("coverage_gap.rs")),
    (Kind::NeedsReview, include_str!("needs_review.rs")),
];
