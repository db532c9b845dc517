//! What each event type announces. One payment is announced by many types; whichever of them the
//! endpoint listens to is enough.
//!
//! Source: enum of `enabled_events` in the official `OpenAPI` file, with the types of older versions.

use crate::record::{EffectKind, Tracks};

/// Event types of one kind of object: the part before which their names agree, and the wire name of
/// the object that they carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Charge,
    Dispute,
    Intent,
    Invoice,
    InvoicePayment,
    Payout,
    Refund,
    Session,
}

impl Family {
    /// The family of a type; `None` for types that never concern payments (`customer.created`).
    pub(super) fn of(event_type: &str) -> Option<Self> {
        let rest = |prefix: &str| event_type.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'));
        match () {
            () if rest("charge.dispute") => Some(Self::Dispute),
            () if rest("charge.refund") || rest("refund") => Some(Self::Refund),
            () if rest("charge") => Some(Self::Charge),
            () if rest("payment_intent") => Some(Self::Intent),
            () if rest("invoice") => Some(Self::Invoice),
            () if rest("invoice_payment") => Some(Self::InvoicePayment),
            () if rest("checkout.session") => Some(Self::Session),
            () if rest("payout") => Some(Self::Payout),
            () => None,
        }
    }

    /// The word in the `object` field of what such an event carries.
    pub(super) const fn object(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::Dispute => "dispute",
            Self::Intent => "payment_intent",
            Self::Invoice => "invoice",
            Self::InvoicePayment => "invoice_payment",
            Self::Payout => "payout",
            Self::Refund => "refund",
            Self::Session => "checkout.session",
        }
    }
}

const CREDIT: Tracks = Tracks::Effect(EffectKind::Credit);
const REFUND: Tracks = Tracks::Effect(EffectKind::Refund);

/// Every known type of the families that concern payments, sorted, with the most that it can
/// announce; the event's object may say less (a charge that is not captured yet, an unpaid session).
const TYPES: &[(&str, Tracks)] = &[
    ("charge.captured", CREDIT),
    ("charge.dispute.closed", Tracks::State),
    ("charge.dispute.created", Tracks::State),
    ("charge.dispute.funds_reinstated", Tracks::Effect(EffectKind::DisputeReinstated)),
    ("charge.dispute.funds_withdrawn", Tracks::Effect(EffectKind::DisputeWithdrawn)),
    ("charge.dispute.updated", Tracks::State),
    ("charge.expired", Tracks::State),
    ("charge.failed", Tracks::State),
    ("charge.pending", Tracks::State),
    ("charge.refund.updated", REFUND),
    ("charge.refunded", REFUND),
    ("charge.succeeded", CREDIT),
    ("charge.updated", Tracks::Effect(EffectKind::Fee)),
    ("checkout.session.async_payment_failed", Tracks::State),
    ("checkout.session.async_payment_succeeded", CREDIT),
    ("checkout.session.completed", CREDIT),
    ("checkout.session.expired", Tracks::Nothing),
    ("invoice.created", Tracks::Nothing),
    ("invoice.deleted", Tracks::Nothing),
    ("invoice.finalization_failed", Tracks::Nothing),
    ("invoice.finalized", Tracks::Nothing),
    ("invoice.marked_uncollectible", Tracks::Nothing),
    ("invoice.overdue", Tracks::Nothing),
    ("invoice.overpaid", Tracks::Nothing),
    ("invoice.paid", CREDIT),
    ("invoice.payment_action_required", Tracks::State),
    ("invoice.payment_attempt_required", Tracks::Nothing),
    ("invoice.payment_failed", Tracks::State),
    ("invoice.payment_succeeded", CREDIT),
    ("invoice.sent", Tracks::Nothing),
    ("invoice.upcoming", Tracks::Nothing),
    ("invoice.updated", Tracks::Nothing),
    ("invoice.voided", Tracks::Nothing),
    ("invoice.will_be_due", Tracks::Nothing),
    ("invoice_payment.paid", CREDIT),
    ("payment_intent.amount_capturable_updated", Tracks::State),
    ("payment_intent.canceled", Tracks::State),
    ("payment_intent.created", Tracks::State),
    ("payment_intent.partially_funded", Tracks::State),
    ("payment_intent.payment_failed", Tracks::State),
    ("payment_intent.processing", Tracks::State),
    ("payment_intent.requires_action", Tracks::State),
    ("payment_intent.succeeded", CREDIT),
    ("payout.canceled", Tracks::Nothing),
    ("payout.created", Tracks::Nothing),
    ("payout.failed", Tracks::State),
    ("payout.paid", Tracks::Effect(EffectKind::Payout)),
    ("payout.reconciliation_completed", Tracks::Nothing),
    ("payout.updated", Tracks::Nothing),
    ("refund.created", REFUND),
    ("refund.failed", Tracks::State),
    ("refund.updated", REFUND),
];

/// Every known type of the families that concern payments, sorted, with the most that it announces.
#[must_use]
pub const fn event_type_effects() -> &'static [(&'static str, Tracks)] {
    TYPES
}

/// The most that a type announces; `None` for a type that is not in the table: foreign
/// (`customer.created`) or newer than it.
#[must_use]
pub fn tracks_of_type(event_type: &str) -> Option<Tracks> {
    let found = TYPES.binary_search_by(|(name, _)| (*name).cmp(event_type)).ok()?;
    TYPES.get(found).map(|(_, tracks)| *tracks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_type_has_a_family() {
        assert!(TYPES.is_sorted_by(|left, right| left.0 < right.0));
        for (name, _) in TYPES {
            assert!(Family::of(name).is_some(), "{name}");
            assert!(tracks_of_type(name).is_some(), "{name}");
        }
        for foreign in ["customer.created", "invoiceitem.created", "source.chargeable", "charge", "payoutx.y"]
        {
            assert_eq!(Family::of(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn c29_every_sibling_type_announces_the_same_effect() {
        let siblings: Vec<&str> =
            TYPES.iter().filter(|(_, tracks)| *tracks == REFUND).map(|(name, _)| *name).collect();
        assert_eq!(
            siblings,
            ["charge.refund.updated", "charge.refunded", "refund.created", "refund.updated"]
        );
    }
}
