//! Disputes: judged by their balance movements, never by status words or age. A dispute that is
//! called won while the money did not come back is a question for a person.

use super::balance::{self, Movement};
use super::issues::Issues;
use super::output::{Moved, Output, Word};
use super::wire::{self, Raw, Read};
use super::{Opening, ReadError};
use crate::record::{EffectKind, NoteKind, Status};

/// What a dispute's status says. Source: enum of `dispute.status` in the official `OpenAPI` file, with
/// the appeal of newer versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DisputeStatus {
    /// An inquiry: no money moves.
    Inquiry,
    /// Not decided.
    Open,
    Won,
    Lost,
}

impl DisputeStatus {
    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            "warning_needs_response" | "warning_under_review" | "warning_closed" | "prevented" => {
                Some(Self::Inquiry)
            }
            "needs_response" | "under_review" | "appeal_needs_response" | "appeal_under_review" => {
                Some(Self::Open)
            }
            "won" => Some(Self::Won),
            "lost" => Some(Self::Lost),
            _ => None,
        }
    }
}

/// Movements of one direction.
struct Direction<'m> {
    kind: EffectKind,
    /// In the order in which they happened; fees left out.
    movements: Vec<&'m Movement>,
}

/// A dispute, read.
struct Dispute<'a> {
    id: &'a str,
    root_id: &'a str,
    created_us: Option<i64>,
    amount: Option<i64>,
    currency: Option<String>,
    status: Option<DisputeStatus>,
}

/// Reads a dispute of its own stream.
pub(super) fn facts(out: &mut Output<'_>, wire: &wire::Dispute<'_>) -> Result<(), ReadError> {
    let mut issues = Issues::new("dispute", out.reading.now_us);
    let opening = Opening {
        stream: "disputes",
        object: "dispute",
        id: wire.id,
        word: wire.object,
        created: wire.created,
        livemode: wire.livemode,
        deleted: wire.deleted,
    };
    let head = opening.read(out.reading, &mut issues)?;
    if !head.is_ours {
        out.notes(&issues, &head.id, &head.id, None, head.created_us);
        return Ok(());
    }
    let charge = issues.reference_id("charge", wire.charge);
    let payment_intent = issues.reference_id("payment_intent", wire.payment_intent);
    let root_id = payment_intent.as_ref().or(charge.as_ref()).unwrap_or(&head.id).clone();
    if root_id == head.id {
        issues.missing("charge");
    }
    let word = issues.required_text("status", wire.status);
    let status = word.as_deref().and_then(DisputeStatus::of);
    if let (Some(word), None) = (&word, status) {
        issues.unknown_value("status", word);
    }
    let dispute = Dispute {
        id: &head.id,
        root_id: &root_id,
        created_us: head.created_us,
        amount: issues.amount("amount", wire.amount),
        currency: issues.currency("currency", wire.currency),
        status,
    };
    if let Some(movements) = movements(&mut issues, wire.balance_transactions) {
        by_movement(out, &mut issues, &dispute, &movements);
    }
    out.alias(&head.id, &root_id, true);
    if let Some(charge) = &charge {
        out.alias(charge, &root_id, false);
    }
    out.notes(&issues, &root_id, &head.id, None, head.created_us);
    Ok(())
}

/// Every movement, or none where one of them cannot be read: half of them would tell another story.
fn movements(issues: &mut Issues, raw: Raw<'_>) -> Option<Vec<Movement>> {
    if !raw.is_present() {
        issues.missing("balance_transactions");
    }
    let items = issues.items("balance_transactions", raw)?;
    let mut movements = Vec::with_capacity(items.len());
    for item in items {
        let Read::Value(json) = item.object() else {
            issues.missing("balance_transactions[].amount");
            return None;
        };
        let movement = balance::movement(issues, "balance_transactions[]", json)?;
        if movement.amount_minor.is_none() {
            issues.missing("balance_transactions[].amount");
            return None;
        }
        movements.push(movement);
    }
    movements.sort_by_key(|movement| movement.created_us);
    Some(movements)
}

fn by_movement(out: &mut Output<'_>, issues: &mut Issues, dispute: &Dispute<'_>, movements: &[Movement]) {
    let direction = |kind: EffectKind| Direction {
        kind,
        movements: movements
            .iter()
            .filter(|movement| !movement.is_fee)
            .filter(|movement| movement.amount_minor.is_some_and(|amount| amount.signum() == kind.sign()))
            .collect(),
    };
    let withdrawn = direction(EffectKind::DisputeWithdrawn);
    let reinstated = direction(EffectKind::DisputeReinstated);
    effect(out, issues, dispute, &withdrawn);
    effect(out, issues, dispute, &reinstated);
    fee(out, issues, dispute, movements);

    let is_withdrawn = !withdrawn.movements.is_empty();
    let is_reinstated = !reinstated.movements.is_empty();
    let mut doubt = |cause, text: &str| issues.add(NoteKind::NeedsReview, cause, text.to_owned());
    let status = match (dispute.status, is_withdrawn, is_reinstated) {
        (Some(DisputeStatus::Won), true, false) => {
            doubt(
                "won_without_reinstatement",
                "the status says won, and no balance transaction returns the money: either it is still to come, or \
                 the dispute was lost in fact",
            );
            Some(Status::Disputed)
        }
        (Some(DisputeStatus::Lost), true, true) => {
            doubt(
                "lost_with_reinstatement",
                "the status says lost, and a balance transaction returned the money: either was undone later",
            );
            None
        }
        (Some(DisputeStatus::Lost), false, _) => {
            doubt(
                "lost_without_withdrawal",
                "the status says lost, and no balance transaction took the money: either it is still to come, or the \
                 money had gone back already",
            );
            None
        }
        (Some(DisputeStatus::Lost), true, false) => Some(Status::DisputeLost),
        (_, true, false) => Some(Status::Disputed),
        _ => None,
    };
    let last_us = movements.last().and_then(|movement| movement.created_us);
    if let (Some(status), Some(at_us)) = (status, last_us.or(dispute.created_us)) {
        out.state(&Word {
            root_id: dispute.root_id,
            object_id: dispute.id,
            status,
            refunded_minor: None,
            authorized_minor: None,
            at_us,
        });
    }
}

fn effect(out: &mut Output<'_>, issues: &mut Issues, dispute: &Dispute<'_>, direction: &Direction<'_>) {
    let Some(first) = direction.movements.first() else { return };
    let (Some(disputed), Some(currency)) = (dispute.amount, dispute.currency.as_deref()) else { return };
    let amount_minor = moved_amount(direction, disputed, currency);
    let repeats = direction
        .movements
        .iter()
        .filter(|movement| movement.amount_minor.map(i64::unsigned_abs) == Some(disputed.unsigned_abs()))
        .count();
    if repeats > 1 && disputed > 0 {
        let text = format!("{repeats} balance transactions move the whole amount as {}", direction.kind);
        issues.add(NoteKind::NeedsReview, "moved_more_than_once", text);
    }
    issues.check_granularity(currency, amount_minor, false);
    let occurred = balance::occurred_us(out.reading, issues, Some(first), dispute.created_us);
    let Some(occurred_at_us) = occurred else { return };
    out.effect(&Moved {
        root_id: dispute.root_id,
        object_id: dispute.id,
        kind: direction.kind,
        amount_minor,
        currency,
        occurred_at_us,
        intent: "",
    });
}

/// The amount in the charge's currency. Movements in that very currency are exact (part of a dispute
/// may be reinstated, in parts); where several make more than was disputed, or one is in another
/// currency, it is the disputed amount.
fn moved_amount(direction: &Direction<'_>, disputed: i64, currency: &str) -> i64 {
    let movements = &direction.movements;
    if movements.iter().any(|movement| movement.currency.as_deref() != Some(currency)) {
        return disputed;
    }
    let moved = movements
        .iter()
        .map(|movement| movement.amount_minor.and_then(i64::checked_abs))
        .try_fold(0_i64, |total, magnitude| total.checked_add(magnitude?));
    moved.filter(|moved| movements.len() == 1 || *moved <= disputed).unwrap_or(disputed)
}

/// The dispute's own fee, which a won dispute may give back.
fn fee(out: &mut Output<'_>, issues: &mut Issues, dispute: &Dispute<'_>, movements: &[Movement]) {
    if !out.is_booked(EffectKind::Fee) {
        return;
    }
    let mut total: i64 = 0;
    let mut currency: Option<&str> = None;
    let mut first_us = None;
    for movement in movements {
        let taken = if movement.is_fee {
            movement.amount_minor.and_then(i64::checked_neg)
        } else {
            Some(movement.fee_minor.unwrap_or(0))
        };
        if taken == Some(0) {
            continue;
        }
        let here = movement.currency.as_deref();
        let (Some(taken), true) = (taken, here.is_some() && currency.is_none_or(|known| here == Some(known)))
        else {
            issues.missing("balance_transactions[].fee");
            return;
        };
        let Some(sum) = total.checked_add(taken) else {
            issues.missing("balance_transactions[].fee");
            return;
        };
        total = sum;
        currency = here;
        first_us = first_us.or(movement.occurred_us(out.reading.basis));
    }
    if let (Some(currency), Some(occurred_at_us), true) = (currency, first_us, total > 0) {
        out.effect(&Moved {
            root_id: dispute.root_id,
            object_id: dispute.id,
            kind: EffectKind::Fee,
            amount_minor: total,
            currency,
            occurred_at_us,
            intent: "",
        });
    }
}
