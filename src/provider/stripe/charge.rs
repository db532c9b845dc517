//! Charges: the credit, the fee, and what has become of the payment.

use super::balance::{self, Movement};
use super::issues::Issues;
use super::output::{Moved, Output, Word};
use super::wire::{self, at_path};
use super::{Opening, ReadError, Reading};
use crate::config::Basis;
use crate::record::{EffectKind, Status};
use std::borrow::Cow;

/// A charge, read.
struct Charge<'a> {
    id: Cow<'a, str>,
    root_id: Cow<'a, str>,
    created_us: Option<i64>,
    amount: Option<i64>,
    amount_captured: Option<i64>,
    amount_refunded: Option<i64>,
    is_captured: bool,
    is_refunded: bool,
    currency: Option<String>,
    invoice: Option<Cow<'a, str>>,
    payment_intent: Option<Cow<'a, str>>,
    status: Option<Cow<'a, str>>,
    movement: Option<Movement>,
    intent: String,
}

/// Reads a charge of its own stream.
pub(super) fn facts(out: &mut Output<'_>, wire: &wire::Charge<'_>, body: &[u8]) -> Result<(), ReadError> {
    let mut issues = Issues::new("charge", out.reading.now_us);
    let opening = Opening {
        stream: "charges",
        object: "charge",
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
    let mut charge = read(&mut issues, wire, head.id, head.created_us);
    charge.intent = intent_of(out.reading, wire, body, &charge);
    credit_and_fee(out, &mut issues, &charge);
    state(out, &mut issues, &charge);
    out.alias(&charge.id, &charge.root_id, false);
    if let Some(invoice) = &charge.invoice {
        out.alias(invoice, &charge.root_id, false);
    }
    out.notes(&issues, &charge.root_id, &charge.id, None, charge.created_us);
    Ok(())
}

fn read<'a>(
    issues: &mut Issues,
    wire: &wire::Charge<'a>,
    id: Cow<'a, str>,
    created_us: Option<i64>,
) -> Charge<'a> {
    let amount = issues.amount("amount", wire.amount);
    let is_captured = issues.flag("captured", wire.captured);
    if is_captured.is_none() {
        issues.missing("captured");
    }
    // Before 2020 there was no `amount_captured`; a captured charge was captured whole.
    let whole = amount.filter(|_| is_captured == Some(true));
    let amount_captured = if wire.amount_captured.is_present() {
        issues.optional_amount("amount_captured", wire.amount_captured)
    } else {
        whole
    };
    let payment_intent = issues.reference_id("payment_intent", wire.payment_intent);
    let balance = issues.reference("balance_transaction", wire.balance_transaction);
    let movement = balance
        .and_then(|reference| reference.expanded)
        .and_then(|json| balance::movement(issues, "balance_transaction", json));
    issues.object("metadata", wire.metadata);
    Charge {
        root_id: payment_intent.clone().unwrap_or_else(|| id.clone()),
        id,
        created_us,
        amount,
        amount_captured,
        amount_refunded: issues.amount("amount_refunded", wire.amount_refunded),
        is_captured: is_captured == Some(true),
        is_refunded: issues.flag("refunded", wire.refunded) == Some(true),
        currency: issues.currency("currency", wire.currency),
        invoice: issues.reference_id("invoice", wire.invoice),
        payment_intent,
        status: issues.required_text("status", wire.status),
        movement,
        intent: String::new(),
    }
}

/// What the customer meant to pay for: the value at the configured path, else the invoice, else
/// the payment intent, else nothing that is known.
fn intent_of(reading: &Reading, wire: &wire::Charge<'_>, body: &[u8], charge: &Charge<'_>) -> String {
    let configured = reading.intent.as_deref().and_then(|path| match path.strip_prefix("metadata.") {
        Some(key) => match wire.metadata.object() {
            wire::Read::Value(metadata) => at_path(metadata, key),
            _ => None,
        },
        None => std::str::from_utf8(body).ok().and_then(|json| at_path(json.trim_ascii(), path)),
    });
    configured
        .or_else(|| charge.invoice.as_deref().map(str::to_owned))
        .or_else(|| charge.payment_intent.as_deref().map(str::to_owned))
        .unwrap_or_default()
}

fn credit_and_fee(out: &mut Output<'_>, issues: &mut Issues, charge: &Charge<'_>) {
    if charge.status.as_deref() != Some("succeeded") || !charge.is_captured {
        return;
    }
    let movement = charge.movement.as_ref();
    let Some(occurred_at_us) = balance::occurred_us(out.reading, issues, movement, charge.created_us) else {
        return;
    };
    let moved = |kind, amount_minor, currency| Moved {
        root_id: &charge.root_id,
        object_id: &charge.id,
        kind,
        amount_minor,
        currency,
        occurred_at_us,
        intent: if kind == EffectKind::Credit { &charge.intent } else { "" },
    };
    if let (Some(amount), Some(currency)) = (charge.amount_captured, charge.currency.as_deref()) {
        issues.check_granularity(currency, amount, false);
        out.effect(&moved(EffectKind::Credit, amount, currency));
    }
    if !out.is_booked(EffectKind::Fee) {
        return;
    }
    match movement {
        // Fees stand in the settlement currency, whatever the customer paid in.
        Some(Movement { fee_minor: Some(fee), currency: Some(currency), .. }) if *fee >= 0 => {
            out.effect(&moved(EffectKind::Fee, *fee, currency));
        }
        // With the other basis the same absence was noted above.
        None if out.reading.basis == Basis::Created => {
            balance::incomplete(issues, "balance_transaction.fee");
        }
        None => {}
        Some(_) => issues.missing("balance_transaction.fee"),
    }
}

fn state(out: &mut Output<'_>, issues: &mut Issues, charge: &Charge<'_>) {
    let Some(status) = charge.status.as_deref() else { return };
    let (status, refunded_minor) = match status {
        "failed" => (Status::Failed, None),
        "succeeded" if charge.is_captured => match refunded(charge) {
            Some(refunded) => (refunded.0, Some(refunded.1)),
            None => return,
        },
        // A released or expired authorisation shows as refunded, although no money ever moved.
        "succeeded" if is_released(charge) => (Status::Canceled, None),
        "pending" | "succeeded" => (Status::Pending, None),
        other => {
            issues.unknown_value("status", other);
            return;
        }
    };
    let at_us = charge.movement.as_ref().and_then(|movement| movement.created_us).or(charge.created_us);
    let Some(at_us) = at_us else { return };
    out.state(&Word {
        root_id: &charge.root_id,
        object_id: &charge.id,
        status,
        refunded_minor,
        authorized_minor: charge.amount,
        at_us,
    });
}

fn is_released(charge: &Charge<'_>) -> bool {
    charge.is_refunded
        || matches!((charge.amount, charge.amount_refunded), (Some(amount), Some(refunded)) if amount > 0 && refunded >= amount)
}

/// Status and refunded amount of a captured charge.
///
/// The part of an authorisation that a partial capture releases stands in `amount_refunded`, too,
/// although no money moved. Less than the released part cannot contain it (more captures may
/// follow); otherwise it is taken off. What is left never exceeds what was captured.
fn refunded(charge: &Charge<'_>) -> Option<(Status, i64)> {
    let (captured, shown) = (charge.amount_captured?, charge.amount_refunded?);
    let released = charge.amount?.saturating_sub(captured).max(0);
    let refunded = if shown < released { shown } else { shown - released }.min(captured);
    if charge.is_refunded || (refunded > 0 && refunded == captured) {
        return Some((Status::Refunded, captured));
    }
    Some((if refunded > 0 { Status::PartiallyRefunded } else { Status::Paid }, refunded))
}
