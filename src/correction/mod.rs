//! Corrections: from findings to the plan that a person reviews. Pure.

use crate::findings::{Action, Finding};
use crate::record::{EffectKind, Scope, Status};

/// One row of `plan.csv`, with what carrying it out needs besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Hash of everything below; a row that was edited no longer has its id.
    pub correction_id: String,
    /// The finding that it answers.
    pub finding_id: String,
    /// Scope.
    pub scope: Scope,
    /// What to do; always a correctable action.
    pub action: Action,
    /// `kind:object` of the effect to book, `reverse:<entry id>`, or `state:<object>`.
    pub effect_key: String,
    /// The object.
    pub object_id: String,
    /// The group (the payment).
    pub root_id: String,
    /// Effect kind, where money moves.
    pub effect: Option<EffectKind>,
    /// Lower-case ISO code, empty where no money moves.
    pub currency: String,
    /// Signed minor units that the local balance moves by when it is carried out.
    pub amount_minor: i64,
    /// Status to set, for `set_state`.
    pub target_state: Option<Status>,
    /// Why, for the ledger.
    pub reason: String,
    /// `review`, or `auto` where the configuration allows the kind without a reviewed plan.
    pub allowed_by: String,
    /// Events to replay.
    pub event_ids: Vec<String>,
    /// Local rows concerned.
    pub effect_ids: Vec<String>,
    /// The provider's time of the effect, Unix µs.
    pub occurred_at_us: i64,
}

/// The findings' corrections, in finding order.
#[must_use]
pub fn plan(_findings: &[Finding]) -> Vec<Correction> {
    Vec::new()
}
