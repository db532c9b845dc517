//! Checkout sessions: one more name for a payment, or for the invoice that leads to it.

use super::issues::Issues;
use super::output::Output;
use super::wire;
use super::{Opening, ReadError};
use crate::record::NoteKind;

/// Whether a payment status of a session is known. Source: enum of `checkout.session.payment_status`.
pub(super) fn is_payment_status(word: &str) -> bool {
    matches!(word, "paid" | "unpaid" | "no_payment_required")
}

/// Reads a checkout session of its own stream.
pub(super) fn facts(out: &mut Output<'_>, wire: &wire::Session<'_>) -> Result<(), ReadError> {
    let mut issues = Issues::new("checkout.session", out.reading.now_us);
    let opening = Opening {
        stream: "checkout_sessions",
        object: "checkout.session",
        id: wire.id,
        word: wire.object,
        created: wire.created,
        livemode: wire.livemode,
        deleted: wire.deleted,
    };
    let head = opening.read(out.reading, &mut issues)?;
    let mut root_id = head.id.clone();
    if head.is_ours {
        let payment_intent = issues.reference_id("payment_intent", wire.payment_intent);
        let invoice = issues.reference_id("invoice", wire.invoice);
        let amount = issues.whole("amount_total", wire.amount_total);
        let payment_status = issues.text("payment_status", wire.payment_status);
        if let Some(word) = &payment_status
            && !is_payment_status(word)
        {
            issues.unknown_value("payment_status", word);
        }
        if let Some(status) = issues.text("status", wire.status)
            && !matches!(&*status, "open" | "complete" | "expired")
        {
            issues.unknown_value("status", &status);
        }
        if let Some(mode) = issues.text("mode", wire.mode)
            && !matches!(&*mode, "payment" | "setup" | "subscription")
        {
            issues.unknown_value("mode", &mode);
        }
        match payment_intent.or(invoice) {
            Some(payment) => root_id = payment,
            None if payment_status.as_deref() == Some("paid") && amount != Some(0) => issues.add(
                NoteKind::UnknownShape,
                "missing_reference",
                "the payment of a paid session stands neither at `checkout.session.payment_intent` nor at \
                 `checkout.session.invoice`"
                    .to_owned(),
            ),
            None => {}
        }
        out.alias(&head.id, &root_id, false);
    }
    out.notes(&issues, &root_id, &head.id, None, head.created_us);
    Ok(())
}
