//! Payment intents: the payment's own word on its status. They move no money; their charges do.

use super::issues::Issues;
use super::output::{Output, Word};
use super::wire::{self, Raw, Read};
use super::{Opening, ReadError};
use crate::record::Status;
use std::borrow::Cow;

/// What a payment intent's status says of the payment. `has_failed`: the last attempt was refused,
/// which is not the end, since another attempt may follow.
pub(super) fn status_of(word: &str, has_failed: bool) -> Option<Status> {
    match word {
        "requires_payment_method" if has_failed => Some(Status::Failed),
        "requires_payment_method"
        | "requires_confirmation"
        | "requires_action"
        | "processing"
        | "requires_capture" => Some(Status::Pending),
        "canceled" => Some(Status::Canceled),
        "succeeded" => Some(Status::Paid),
        _ => None,
    }
}

/// The charge that a payment intent names: `latest_charge`, before 2022-11-15 the newest of `charges`.
pub(super) fn charge_of<'a>(
    issues: &mut Issues,
    latest_charge: Raw<'a>,
    charges: Raw<'a>,
) -> Option<Cow<'a, str>> {
    let latest = issues.reference_id("latest_charge", latest_charge);
    let listed = issues.items("charges", charges).unwrap_or_default();
    let newest = listed.first().and_then(|charge| issues.reference_id("charges.data[]", *charge));
    latest.or(newest)
}

/// Reads a payment intent of its own stream.
pub(super) fn facts(out: &mut Output<'_>, wire: &wire::PaymentIntent<'_>) -> Result<(), ReadError> {
    let mut issues = Issues::new("payment_intent", out.reading.now_us);
    let opening = Opening {
        stream: "payment_intents",
        object: "payment_intent",
        id: wire.id,
        word: wire.object,
        created: wire.created,
        livemode: wire.livemode,
        deleted: wire.deleted,
    };
    let head = opening.read(out.reading, &mut issues)?;
    if head.is_ours {
        let charge = charge_of(&mut issues, wire.latest_charge, wire.charges);
        let invoice = issues.reference_id("invoice", wire.invoice);
        let has_failed = match wire.last_payment_error.object() {
            Read::Wrong => {
                issues.object("last_payment_error", wire.last_payment_error);
                false
            }
            found => matches!(found, Read::Value(_)),
        };
        if let Some(word) = issues.required_text("status", wire.status) {
            match (status_of(&word, has_failed), head.created_us) {
                (None, _) => issues.unknown_value("status", &word),
                (Some(_), None) => {}
                (Some(status), Some(at_us)) => out.state(&Word {
                    root_id: &head.id,
                    object_id: &head.id,
                    status,
                    refunded_minor: None,
                    authorized_minor: None,
                    at_us,
                }),
            }
        }
        for name in charge.iter().chain(&invoice) {
            out.alias(name, &head.id, false);
        }
    }
    out.notes(&issues, &head.id, &head.id, None, head.created_us);
    Ok(())
}
