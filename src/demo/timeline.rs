//! The events of a payment, in causal order, each with what it means for the books.

use super::payment::{Charge, Dispute, Outcome, Payment, Refund};
use super::wire;
use crate::record::{EffectKind, Status};
use serde_json::{Value, json};

/// A change of the books that an event announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Kind.
    pub kind: EffectKind,
    /// The charge, refund or dispute that it belongs to.
    pub object_id: String,
    /// Magnitude, minor units.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: &'static str,
}

/// What an event means, as a person who reads the provider's documentation would say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Money moved.
    Moves(Change),
    /// Money that had moved came back: the refund failed.
    Undoes(Change),
    /// Only a status.
    Says,
    /// Nothing that a shop books.
    Nothing,
}

/// An event before it has an id.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Event type.
    pub kind: &'static str,
    /// Unix s.
    pub at_s: i64,
    /// `data.object`.
    pub object: Value,
    /// The id that the event is about, in the form in which a simple handler would book it.
    pub subject: String,
    /// What it means.
    pub meaning: Meaning,
    /// The payment's status after it, for handlers that believe each event.
    pub status: Option<Status>,
}

/// The events of a payment in causal order.
#[must_use]
pub fn drafts(payment: &Payment) -> Vec<Draft> {
    let mut told = Vec::with_capacity(8);
    opening(payment, &mut told);
    for (id, failed_s) in &payment.failed {
        let charge = wire::failed_charge(payment, id, *failed_s);
        told.push(says("charge.failed", *failed_s, charge, id, Some(Status::Failed)));
        if payment.intent_id.is_some() {
            told.push(intent_says(payment, "payment_intent.payment_failed", *failed_s, Some(Status::Failed)));
        }
    }
    if let Some(canceled_s) = payment.canceled_s {
        told.push(intent_says(payment, "payment_intent.canceled", canceled_s, Some(Status::Canceled)));
    }
    if let Some(charge) = &payment.charge {
        paying(payment, charge, &mut told);
        for refund in payment.refunds.iter().filter(|refund| refund.has_events) {
            refunding(payment, charge, refund, &mut told);
        }
        if let Some(dispute) = &payment.dispute {
            disputing(payment, charge, dispute, &mut told);
        }
    }
    // Causal order: stable by second, so that ties keep the order in which they were told.
    told.sort_by_key(|draft| draft.at_s);
    told
}

fn opening(payment: &Payment, told: &mut Vec<Draft>) {
    let at_s = payment.created_s;
    if let Some(invoice) = &payment.invoice {
        for kind in ["invoice.created", "invoice.finalized"] {
            let object = wire::invoice(payment, at_s - 1, payment.has_old_shape);
            told.push(Draft {
                kind,
                at_s,
                object,
                subject: invoice.clone(),
                meaning: Meaning::Nothing,
                status: None,
            });
        }
    }
    if payment.intent_id.is_some() {
        let object = wire::intent(payment, at_s - 1, payment.has_old_shape);
        let subject = payment.root_id().to_owned();
        let meaning = Meaning::Nothing;
        told.push(Draft { kind: "payment_intent.created", at_s, object, subject, meaning, status: None });
    }
}

fn paying(payment: &Payment, charge: &Charge, told: &mut Vec<Draft>) {
    let is_old = payment.has_old_shape;
    let object_at = |at_s| wire::charge(payment, charge, at_s, is_old);
    let created_s = charge.created_s;
    let is_immediate = charge.captured_s == Some(created_s);
    if charge.is_delayed {
        told.push(says("charge.pending", created_s, object_at(created_s), &charge.id, Some(Status::Pending)));
        told.push(intent_says(payment, "payment_intent.processing", created_s, Some(Status::Pending)));
        if let Some(session) = &payment.session {
            let object = wire::session(payment, created_s);
            told.push(says("checkout.session.completed", created_s, object, session, Some(Status::Pending)));
        }
    } else if !is_immediate {
        told.push(says(
            "charge.succeeded",
            created_s,
            object_at(created_s),
            &charge.id,
            Some(Status::Pending),
        ));
        if payment.intent_id.is_some() {
            let kind = "payment_intent.amount_capturable_updated";
            told.push(intent_says(payment, kind, created_s, Some(Status::Pending)));
        }
    }
    let Some(captured_s) = charge.captured_s else { return };
    let effect = Change {
        kind: EffectKind::Credit,
        object_id: charge.id.clone(),
        amount_minor: charge.captured_minor,
        currency: payment.currency,
    };
    let mut credits = |kind, object, subject: &str| {
        let meaning = Meaning::Moves(effect.clone());
        let status = Some(Status::Paid);
        told.push(Draft { kind, at_s: captured_s, object, subject: subject.to_owned(), meaning, status });
    };
    let kind = if is_immediate || charge.is_delayed { "charge.succeeded" } else { "charge.captured" };
    credits(kind, object_at(captured_s), &charge.id);
    if payment.intent_id.is_some() {
        let object = wire::intent(payment, captured_s, is_old);
        credits("payment_intent.succeeded", object, payment.root_id());
    }
    if let Some(invoice) = &payment.invoice {
        for kind in ["invoice.paid", "invoice.payment_succeeded"] {
            let mut object = wire::invoice(payment, captured_s, is_old);
            if !is_old {
                wire::set(&mut object, "payments", wire::invoice_payments(payment));
            }
            credits(kind, object, invoice);
        }
    }
    if let Some(session) = &payment.session {
        let kind = if charge.is_delayed {
            "checkout.session.async_payment_succeeded"
        } else {
            "checkout.session.completed"
        };
        credits(kind, wire::session(payment, captured_s), session);
    }
    told.push(Draft {
        kind: "charge.updated",
        at_s: captured_s + 1,
        object: object_at(captured_s + 1),
        subject: charge.id.clone(),
        meaning: Meaning::Nothing,
        status: None,
    });
}

fn refunding(payment: &Payment, charge: &Charge, refund: &Refund, told: &mut Vec<Draft>) {
    let effect = Change {
        kind: EffectKind::Refund,
        object_id: refund.id.clone(),
        amount_minor: refund.amount_minor,
        currency: payment.currency,
    };
    let object_at = |at_s| wire::refund(payment, charge, refund, at_s);
    let succeeded_s = refund.succeeded_s;
    let status = Some(payment.status_at(succeeded_s));
    let moves = |kind, object| Draft {
        kind,
        at_s: succeeded_s,
        object,
        subject: refund.id.clone(),
        meaning: Meaning::Moves(effect.clone()),
        status,
    };
    if refund.created_s < succeeded_s {
        let created = object_at(refund.created_s);
        told.push(says("refund.created", refund.created_s, created, &refund.id, None));
        told.push(moves("refund.updated", object_at(succeeded_s)));
    } else {
        told.push(moves("refund.created", object_at(succeeded_s)));
    }
    told.push(moves("charge.refunded", wire::charge(payment, charge, succeeded_s, payment.has_old_shape)));
    if let Some(failed_s) = refund.failed_s {
        for kind in ["refund.failed", "charge.refund.updated"] {
            told.push(Draft {
                kind,
                at_s: failed_s,
                object: object_at(failed_s),
                subject: refund.id.clone(),
                meaning: Meaning::Undoes(effect.clone()),
                status: Some(payment.status_at(failed_s)),
            });
        }
    }
}

fn disputing(payment: &Payment, charge: &Charge, dispute: &Dispute, told: &mut Vec<Draft>) {
    let effect = |kind| Change {
        kind,
        object_id: dispute.id.clone(),
        amount_minor: charge.captured_minor,
        currency: payment.currency,
    };
    let object_at = |at_s| wire::dispute(payment, charge, dispute, at_s);
    let created_s = dispute.created_s;
    let status = Some(payment.status_at(created_s));
    told.push(says("charge.dispute.created", created_s, object_at(created_s), &dispute.id, status));
    if dispute.outcome == Outcome::Inquiry {
        return;
    }
    told.push(Draft {
        kind: "charge.dispute.funds_withdrawn",
        at_s: created_s,
        object: object_at(created_s),
        subject: dispute.id.clone(),
        meaning: Meaning::Moves(effect(EffectKind::DisputeWithdrawn)),
        status,
    });
    let (Outcome::Won(decided_s) | Outcome::Lost(decided_s)) = dispute.outcome else { return };
    let status = Some(payment.status_at(decided_s));
    told.push(says("charge.dispute.closed", decided_s, object_at(decided_s), &dispute.id, status));
    if let Outcome::Won(_) = dispute.outcome {
        told.push(Draft {
            kind: "charge.dispute.funds_reinstated",
            at_s: decided_s,
            object: object_at(decided_s),
            subject: dispute.id.clone(),
            meaning: Meaning::Moves(effect(EffectKind::DisputeReinstated)),
            status,
        });
    }
}

fn says(kind: &'static str, at_s: i64, object: Value, subject: &str, status: Option<Status>) -> Draft {
    Draft { kind, at_s, object, subject: subject.to_owned(), meaning: Meaning::Says, status }
}

fn intent_says(payment: &Payment, kind: &'static str, at_s: i64, status: Option<Status>) -> Draft {
    let object = wire::intent(payment, at_s, payment.has_old_shape);
    says(kind, at_s, object, payment.root_id(), status)
}

/// An event of a type that no documentation knows.
#[must_use]
pub fn teleported(payment: &Payment, at_s: i64) -> Draft {
    let mut object = wire::intent(payment, at_s, payment.has_old_shape);
    wire::set(&mut object, "teleported_to", json!("mars"));
    says("payment_intent.teleported", at_s, object, payment.root_id(), None)
}
