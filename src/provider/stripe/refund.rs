//! Refunds: an effect only while they have succeeded. A refund that failed later is none.

use super::balance;
use super::issues::Issues;
use super::output::{Moved, Output};
use super::wire::{self, Raw, Read};
use super::{Opening, ReadError};
use crate::record::EffectKind;

/// Where a refund stands. Source: field text of `refund.status` in the official `OpenAPI` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefundStatus {
    /// Not sent yet, or waiting for the customer.
    Open,
    /// Sent.
    Succeeded,
    /// Came back, or was taken back.
    Over,
}

impl RefundStatus {
    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            "pending" | "requires_action" => Some(Self::Open),
            "succeeded" => Some(Self::Succeeded),
            "failed" | "canceled" => Some(Self::Over),
            _ => None,
        }
    }
}

/// Whether a refund took money from the balance. The part of an authorisation that was never
/// captured is released through a refund record, too; that one says `balance_transaction: null`.
pub(super) fn moves_money(status: RefundStatus, balance_transaction: Raw<'_>) -> bool {
    status == RefundStatus::Succeeded && balance_transaction.reference() != Read::Null
}

/// Reads a refund of its own stream.
pub(super) fn facts(out: &mut Output<'_>, wire: &wire::Refund<'_>) -> Result<(), ReadError> {
    let mut issues = Issues::new("refund", out.reading.now_us);
    let opening = Opening {
        stream: "refunds",
        object: "refund",
        id: wire.id,
        word: wire.object,
        created: wire.created,
        livemode: Raw::default(),
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
    let amount = issues.amount("amount", wire.amount);
    let currency = issues.currency("currency", wire.currency);
    let balance = issues.reference("balance_transaction", wire.balance_transaction);
    let movement = balance
        .and_then(|reference| reference.expanded)
        .and_then(|json| balance::movement(&mut issues, "balance_transaction", json));
    let word = issues.required_text("status", wire.status);
    let status = word.as_deref().and_then(RefundStatus::of);
    if let (Some(word), None) = (&word, status) {
        issues.unknown_value("status", word);
    }
    if status.is_some_and(|status| moves_money(status, wire.balance_transaction))
        && let (Some(amount_minor), Some(currency)) = (amount, currency.as_deref())
        && let Some(occurred_at_us) =
            balance::occurred_us(out.reading, &mut issues, movement.as_ref(), head.created_us)
    {
        issues.check_granularity(currency, amount_minor, false);
        out.effect(&Moved {
            root_id: &root_id,
            object_id: &head.id,
            kind: EffectKind::Refund,
            amount_minor,
            currency,
            occurred_at_us,
            intent: "",
        });
    }
    out.alias(&head.id, &root_id, true);
    if let Some(charge) = &charge {
        out.alias(charge, &root_id, false);
    }
    out.notes(&issues, &root_id, &head.id, None, head.created_us);
    Ok(())
}
