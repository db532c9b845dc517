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
use std::collections::BTreeSet;

/// Two rows that were booked in another order than their effects happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Swapped {
    /// The row that was booked first though its effect came later.
    pub(super) early: String,
    /// The row that was booked later though its effect came first.
    pub(super) late: String,
}

/// A pair that was booked in another order than it happened in: a payment after its refund or dispute,
/// or a dispute's withdrawal after its reinstatement.
pub(super) fn swapped_pair(units: &[Unit]) -> Option<Swapped> {
    let booked = || units.iter().filter(|unit| unit.has_provider() && unit.has_local());
    let steps = [
        (EffectKind::Credit, [EffectKind::Refund, EffectKind::DisputeWithdrawn].as_slice()),
        (EffectKind::DisputeWithdrawn, [EffectKind::DisputeReinstated].as_slice()),
    ];
    steps.into_iter().find_map(|(before, after)| {
        let mut happened: Vec<(i64, bool, &(i64, String))> = booked()
            .filter(|unit| unit.kind == before || after.contains(&unit.kind))
            .filter_map(|unit| {
                let [first, _] = unit.booked.as_ref()?;
                Some((unit.occurred_at_us(), unit.kind != before, first))
            })
            .collect();
        happened.sort_unstable();
        let mut latest: Option<&(i64, String)> = None;
        for (_, is_after, first) in happened {
            match latest {
                Some(late) if is_after && late.0 > first.0 => {
                    return Some(Swapped { early: first.1.clone(), late: late.1.clone() });
                }
                _ if is_after => {}
                _ => latest = latest.max(Some(first)),
            }
        }
        None
    })
}

/// Whether the status lags, or went along a back-edge that the provider has taken; else it is ahead of
/// the provider, and no event of the provider explains that.
pub(super) fn is_behind(lag: &StatusBreak) -> bool {
    lag.state.status < lag.expected || took_back_edge(lag)
}

/// The status lags, and nothing else explains it.
pub(super) fn stale_state(lag: &StatusBreak) -> Finding {
    let (cause, effect_ids, note) = match &lag.swapped {
        Some(pair) => (
            "applied_out_of_order",
            vec![pair.early.clone(), pair.late.clone()],
            format!("{} was booked before {}, and happened after it", pair.early, pair.late),
        ),
        None => ("", Vec::new(), "the local status is older than the provider's".to_owned()),
    };
    Finding {
        cause: cause.to_owned(),
        effect_ids,
        action: Action::SetState,
        note,
        ..lag.finding(Kind::StaleState)
    }
}

/// A won dispute gives the payment back its status, and so does a refund that failed: a part of the payment
/// that moved no money and is no dispute, in a payment without the money of a dispute.
fn took_back_edge(lag: &StatusBreak) -> bool {
    let (group, units) = (lag.group, lag.units);
    let has = |kind: EffectKind| group.provider_effects.iter().any(|effect| effect.kind == kind);
    match lag.state.status {
        Status::Disputed => has(EffectKind::DisputeReinstated),
        Status::PartiallyRefunded | Status::Refunded => {
            let is_dispute =
                |kind| matches!(kind, EffectKind::DisputeWithdrawn | EffectKind::DisputeReinstated);
            let of_disputes: BTreeSet<&str> = units
                .iter()
                .filter(|unit| is_dispute(unit.kind))
                .map(|unit| unit.object_id.as_str())
                .collect();
            lag.idle_parts.iter().any(|id| !of_disputes.contains(id.as_str()))
                && !has(EffectKind::DisputeWithdrawn)
                && !has(EffectKind::DisputeReinstated)
        }
        _ => false,
    }
}
