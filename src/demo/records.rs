//! The objects and the truth of a payment, added to its world.

use super::payment::{Outcome, Payment};
use super::timeline::{Draft, Meaning};
use super::wire::{self, Movement, NOW_S};
use super::world::{Record, Stream, TruthEffect, World};
use crate::record::EffectKind;
use serde_json::Value;

const DAY_S: i64 = 86_400;

impl World {
    fn push_record(&mut self, stream: Stream, id: &str, created_s: i64, object: &Value) {
        let record = Record {
            id: id.to_owned(),
            created_s,
            sequence: self.next_sequence(),
            body: object.to_string().into(),
            includable: None,
        };
        self.records.entry(stream).or_default().push(record);
    }

    fn push_movement(&mut self, movement: &Movement<'_>) {
        let object = wire::balance_transaction(movement);
        self.push_record(Stream::BalanceTransactions, movement.id, movement.created_s, &object);
    }

    /// The objects of a payment as they are now.
    pub(super) fn add_records(&mut self, payment: &Payment) {
        if let Some(id) = &payment.intent_id {
            let object = wire::intent(payment, NOW_S, false);
            self.push_record(Stream::PaymentIntents, id, payment.created_s, &object);
        }
        if let Some(id) = &payment.session {
            let object = wire::session(payment, NOW_S);
            self.push_record(Stream::CheckoutSessions, id, payment.created_s, &object);
        }
        for (id, failed_s) in &payment.failed {
            let object = wire::failed_charge(payment, id, *failed_s);
            self.push_record(Stream::Charges, id, *failed_s, &object);
        }
        self.add_invoice(payment);
        let Some(charge) = &payment.charge else { return };
        let object = wire::charge(payment, charge, NOW_S, false);
        self.push_record(Stream::Charges, &charge.id, charge.created_s, &object);
        if let Some(captured_s) = charge.captured_s {
            self.push_movement(&Movement {
                id: &charge.transaction,
                kind: if charge.is_delayed { "payment" } else { "charge" },
                category: "charge",
                source: &charge.id,
                amount_minor: charge.captured_minor,
                currency: payment.currency,
                fee_minor: charge.fee_minor,
                created_s: captured_s,
            });
        }
        for refund in &payment.refunds {
            let object = wire::refund(payment, charge, refund, NOW_S);
            self.push_record(Stream::Refunds, &refund.id, refund.created_s, &object);
            let movement = |id, kind, category, amount_minor, created_s| Movement {
                id,
                kind,
                category,
                source: &refund.id,
                amount_minor,
                currency: payment.currency,
                fee_minor: 0,
                created_s,
            };
            let taken =
                movement(&*refund.transaction, "refund", "refund", -refund.amount_minor, refund.created_s);
            self.push_movement(&taken);
            if let Some(failed_s) = refund.failed_s {
                let id = &*refund.failure_transaction;
                self.push_movement(&movement(
                    id,
                    "refund_failure",
                    "refund_failure",
                    refund.amount_minor,
                    failed_s,
                ));
            }
        }
        if let Some(dispute) = &payment.dispute {
            let object = wire::dispute(payment, charge, dispute, NOW_S);
            self.push_record(Stream::Disputes, &dispute.id, dispute.created_s, &object);
            for movement in wire::dispute_movements(payment, dispute, NOW_S) {
                self.push_movement(&movement);
            }
        }
    }

    fn add_invoice(&mut self, payment: &Payment) {
        let Some(id) = &payment.invoice else { return };
        let body = wire::invoice(payment, NOW_S, false).to_string().into();
        let payments = wire::invoice_payments(payment).to_string().into();
        let record = Record {
            id: id.clone(),
            created_s: payment.created_s,
            sequence: self.next_sequence(),
            body,
            includable: Some(("payments", payments)),
        };
        self.records.entry(Stream::Invoices).or_default().push(record);
    }

    /// The truth about a payment's money, from its story alone.
    pub(super) fn add_truth(&mut self, payment: &Payment) {
        let Some(charge) = &payment.charge else { return };
        let effect = |kind, object_id: &str, amount_minor, occurred_s| TruthEffect {
            kind,
            root_id: payment.root_id().to_owned(),
            object_id: object_id.to_owned(),
            amount_minor,
            currency: payment.currency,
            occurred_s,
        };
        if let Some(captured_s) = charge.captured_s {
            self.truth.push(effect(EffectKind::Credit, &charge.id, charge.captured_minor, captured_s));
        }
        for refund in payment.refunds.iter().filter(|refund| refund.failed_s.is_none()) {
            let amount_minor = refund.amount_minor;
            self.truth.push(effect(EffectKind::Refund, &refund.id, amount_minor, refund.created_s));
        }
        if let Some(dispute) = payment.dispute.as_ref().filter(|d| d.outcome != Outcome::Inquiry) {
            let (id, amount_minor) = (&dispute.id, charge.captured_minor);
            let withdrawn = effect(EffectKind::DisputeWithdrawn, id, amount_minor, dispute.created_s);
            self.truth.push(withdrawn);
            if let Outcome::Won(won_s) = dispute.outcome {
                self.truth.push(effect(EffectKind::DisputeReinstated, id, amount_minor, won_s));
            }
        }
    }

    /// Payouts of the month, all of them arrived.
    pub(super) fn pay_out(&mut self, count: usize) {
        for _ in 0..count {
            let (id, transaction) = (self.rng.id("po"), self.rng.id("txn"));
            let currency = self.rng.pick(&["usd", "eur", "brl"]);
            let amount_minor = self.rng.between(20_000, 900_000);
            let created_s = self.rng.between(self.from_s() + 3_600, self.until_s() - 5 * DAY_S);
            let object_as =
                |status| wire::payout(&id, &transaction, amount_minor, currency, created_s, status);
            self.push_record(Stream::Payouts, &id, created_s, &object_as("paid"));
            self.push_movement(&Movement {
                id: &transaction,
                kind: "payout",
                category: "payout",
                source: &id,
                amount_minor: -amount_minor,
                currency,
                fee_minor: 0,
                created_s,
            });
            for (kind, status, at_s) in
                [("payout.created", "in_transit", created_s), ("payout.paid", "paid", created_s + 2 * DAY_S)]
            {
                self.add_plain_event(kind, at_s, object_as(status), &id);
            }
            self.truth.push(TruthEffect {
                kind: EffectKind::Payout,
                root_id: id.clone(),
                object_id: id,
                amount_minor,
                currency,
                occurred_s: created_s,
            });
        }
    }

    /// An event that moves no money and that the shop does not listen to.
    pub(super) fn make_noise(&mut self) {
        let at_s = self.rng.between(self.from_s(), self.until_s());
        let kind =
            self.rng.pick(&["customer.updated", "customer.updated", "customer.created", "customer.deleted"]);
        let customer = self.some_customer();
        let object = wire::customer(&customer.id, &customer.name, at_s);
        self.add_plain_event(kind, at_s, object, &customer.id);
    }

    fn add_plain_event(&mut self, kind: &'static str, at_s: i64, object: Value, subject: &str) {
        let subject = subject.to_owned();
        let draft = Draft { kind, at_s, object, subject, meaning: Meaning::Nothing, status: None };
        self.push_event(None, wire::VERSION_NEW, 0, draft);
    }
}
