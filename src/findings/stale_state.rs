//! # What it flags
//! A local status that is older than the provider's. With cause `applied_out_of_order` the effects were
//! booked in another order than they happened, and the swapped pair is named.
//!
//! # Why it matters
//! Goods are sent for a refunded order, or kept back from a paid one.
//!
//! # Usual causes
//! The last arrival wins, a late retry overwrites newer state, a status handler failed.
//!
//! # What to do
//! Apply the plan: the status is fetched from the provider at that moment and written under its rank.

use super::judge::StatusBreak;
use super::{Action, Finding, Kind, Unit};
use crate::record::{EffectKind, Status};

/// Two rows that were booked in another order than their effects happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Swapped {
    /// The row that was booked first though its effect came later.
    pub(super) early: String,
    /// The row that was booked later though its effect came first.
    pub(super) late: String,
}

/// The first swapped pair: a payment booked after its refund or dispute, or a dispute's withdrawal after
/// its reinstatement.
pub(super) fn swapped_pair(units: &[Unit]) -> Option<Swapped> {
    let comes_first = |a: EffectKind, b: EffectKind| match a {
        EffectKind::Credit => matches!(b, EffectKind::Refund | EffectKind::DisputeWithdrawn),
        EffectKind::DisputeWithdrawn => b == EffectKind::DisputeReinstated,
        _ => false,
    };
    let both = || units.iter().filter(|unit| !unit.provider.is_empty());
    for first in both() {
        for second in both().filter(|second| comes_first(first.kind, second.kind)) {
            let (Some(a), Some(b)) = (first.rows.first(), second.rows.first()) else { continue };
            if a.applied_at_us > b.applied_at_us {
                return Some(Swapped { early: b.effect_id.clone(), late: a.effect_id.clone() });
            }
        }
    }
    None
}

/// The status lags, or went along a back-edge that the provider has taken.
pub(super) fn stale_state(lag: &StatusBreak) -> Option<Finding> {
    if lag.state.status > lag.expected && !took_back_edge(lag) {
        return None;
    }
    let (cause, effect_ids, note) = match &lag.swapped {
        Some(pair) => (
            "applied_out_of_order",
            vec![pair.early.clone(), pair.late.clone()],
            format!("{} was booked before {}, and happened after it", pair.early, pair.late),
        ),
        None => ("", Vec::new(), "the local status is older than the provider's".to_owned()),
    };
    Some(Finding {
        cause: cause.to_owned(),
        effect_ids,
        action: Action::SetState,
        note,
        ..lag.finding(Kind::StaleState)
    })
}

/// A won dispute gives the payment back its status, and so does a refund that failed.
fn took_back_edge(lag: &StatusBreak) -> bool {
    let (group, units) = (lag.group, lag.units);
    let has = |kind: EffectKind| group.provider_effects.iter().any(|effect| effect.kind == kind);
    match lag.state.status {
        Status::Disputed => has(EffectKind::DisputeReinstated),
        Status::PartiallyRefunded | Status::Refunded => {
            let with_effect =
                |id: &String| group.provider_effects.iter().any(|effect| effect.object_id == *id);
            let disputes = [EffectKind::DisputeWithdrawn, EffectKind::DisputeReinstated];
            let is_booked =
                |id: &String| units.iter().any(|unit| unit.object_id == *id && !unit.rows.is_empty());
            let mut failed = group.parts.iter().filter(|id| !with_effect(id) && !is_booked(id));
            failed.next().is_some()
                && !group.provider_effects.iter().any(|effect| disputes.contains(&effect.kind))
        }
        _ => false,
    }
}
