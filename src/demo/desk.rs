//! The two handlers at work on one payment. The honest one books by effect key and asks for the present
//! status; the naive one books whatever comes and believes every event.

use super::faults::{ExtraRow, Sabotage};
use super::handlers::{LedgerRow, StateRow};
use super::payment::{Outcome, Payment};
use super::random::Rng;
use super::timeline::{Change, Meaning};
use super::world::{Event, World};
use crate::record::{EffectKind, InboxStatus, SECOND_US, Status};
use std::collections::BTreeSet;

/// One HTTP attempt.
pub(super) struct Delivery<'a> {
    pub(super) event: &'a Event,
    pub(super) at_us: i64,
}

/// The shop's view of one payment while its deliveries come in.
pub(super) struct Desk<'a> {
    payment: &'a Payment,
    sabotage: &'a [Sabotage],
    pub(super) ledger: Vec<LedgerRow>,
    booked: BTreeSet<(EffectKind, String)>,
    pub(super) state: Option<StateRow>,
}

impl<'a> Desk<'a> {
    /// A desk at which nothing has arrived.
    pub(super) const fn new(payment: &'a Payment, sabotage: &'a [Sabotage]) -> Self {
        Self { payment, sabotage, ledger: Vec::new(), booked: BTreeSet::new(), state: None }
    }

    /// Books by effect key, once, whatever event brings it, and keeps the status that the provider
    /// has at that time.
    pub(super) fn take_honestly(&mut self, delivery: &Delivery<'_>) -> InboxStatus {
        let now_s = delivery.at_us.div_euclid(SECOND_US);
        match &delivery.event.meaning {
            Meaning::Moves(change) if self.still_holds(change, now_s) => {
                let key = (change.kind, change.object_id.clone());
                if self.booked.insert(key) {
                    self.book(delivery, change, format!("{}:{}", change.kind, change.object_id));
                }
            }
            Meaning::Undoes(change) if !self.ignores_failures() => self.undo(delivery, change),
            _ => {}
        }
        if delivery.event.status.is_none() {
            return InboxStatus::Applied;
        }
        let status = self.status_now(now_s);
        if self.state.as_ref().is_some_and(|state| state.status == status) {
            return if delivery.event.status == Some(status) {
                InboxStatus::Applied
            } else {
                InboxStatus::Superseded
            };
        }
        self.set_state(delivery, status);
        InboxStatus::Applied
    }

    /// Books whatever comes, as often as it comes, and believes each event's status.
    pub(super) fn take_naively(&mut self, delivery: &Delivery<'_>) {
        let kind = delivery.event.kind;
        let is_booked =
            matches!(
                kind,
                "charge.succeeded"
                    | "charge.captured"
                    | "refund.created"
                    | "refund.updated"
                    | "charge.dispute.funds_withdrawn"
            ) || self.sabotage.iter().any(|s| matches!(s, Sabotage::NaiveAlsoBooks(also) if *also == kind));
        match &delivery.event.meaning {
            Meaning::Moves(change) if is_booked => self.book(delivery, change, String::new()),
            Meaning::Undoes(change) if kind == "refund.failed" => self.undo(delivery, change),
            _ => {}
        }
        if let Some(status) = delivery.event.status {
            self.set_state(delivery, status);
        }
    }

    /// Whether the provider, asked before booking, still says that the money moved.
    fn still_holds(&self, change: &Change, now_s: i64) -> bool {
        let refund = self.payment.refunds.iter().find(|refund| refund.id == change.object_id);
        self.ignores_failures() || refund.is_none_or(|refund| refund.holds_at(now_s))
    }

    fn status_now(&self, now_s: i64) -> Status {
        let failed_s = self.payment.refunds.iter().find_map(|refund| refund.failed_s);
        match failed_s {
            Some(failed_s) if self.ignores_failures() => self.payment.status_at(now_s.min(failed_s - 1)),
            _ => self.payment.status_at(now_s),
        }
    }

    fn ignores_failures(&self) -> bool {
        self.sabotage.contains(&Sabotage::IgnoresRefundFailure)
    }

    fn book(&mut self, delivery: &Delivery<'_>, change: &Change, effect_key: String) {
        let event = delivery.event;
        // A payment-level event names the payment; refunds and disputes are named by their own ids.
        let names_payment = change.kind == EffectKind::Credit && !event.kind.starts_with("charge.");
        let own_id = if names_payment { event.subject.clone() } else { change.object_id.clone() };
        let mut row = LedgerRow {
            entry_id: format!("{}#{}", self.payment.root_id(), self.ledger.len()),
            effect_key,
            object_id: own_id,
            kind: change.kind,
            amount_minor: change.amount_minor,
            currency: change.currency,
            occurred_us: event.created_s * SECOND_US,
            applied_us: delivery.at_us,
            event_id: event.id.clone(),
            corrects: String::new(),
        };
        for one in self.sabotage {
            if let Sabotage::BooksAs { object_id, amount_minor, currency, as_object_id } = one
                && *object_id == change.object_id
            {
                row.amount_minor = *amount_minor;
                row.currency = currency;
                if as_object_id != object_id {
                    row.object_id.clone_from(as_object_id);
                    // What is booked on another object cannot have the right key.
                    row.effect_key = String::new();
                }
            }
        }
        self.ledger.push(row);
    }

    /// A compensating row for the booked one, if it was booked and not undone yet.
    fn undo(&mut self, delivery: &Delivery<'_>, change: &Change) {
        let is_its = |row: &&LedgerRow| row.object_id == change.object_id && row.kind == change.kind;
        let Some(booked) = self.ledger.iter().find(is_its).cloned() else { return };
        if self.ledger.iter().any(|row| row.corrects == booked.entry_id) {
            return;
        }
        self.ledger.push(LedgerRow {
            entry_id: format!("{}#{}", self.payment.root_id(), self.ledger.len()),
            amount_minor: -booked.amount_minor,
            occurred_us: delivery.event.created_s * SECOND_US,
            applied_us: delivery.at_us,
            event_id: delivery.event.id.clone(),
            corrects: booked.entry_id.clone(),
            ..booked
        });
    }

    fn set_state(&mut self, delivery: &Delivery<'_>, status: Status) {
        self.state = Some(StateRow {
            object_id: self.payment.root_id().to_owned(),
            status,
            provider_us: delivery.event.created_s * SECOND_US,
            updated_us: delivery.at_us,
        });
    }

    /// Money that no subscribed event announces comes from the bank statement, a day later.
    pub(super) fn import(&mut self, world: &World, rng: &mut Rng) {
        let Some(dispute) = &self.payment.dispute else { return };
        let Outcome::Won(won_s) = dispute.outcome else { return };
        if self.sabotage.contains(&Sabotage::NotImported) {
            return;
        }
        let applied_us = (won_s + 3_600 + rng.between(0, 43_200)) * SECOND_US;
        self.ledger.push(LedgerRow {
            entry_id: format!("{}#{}", self.payment.root_id(), self.ledger.len()),
            effect_key: format!("dispute_reinstated:{}", dispute.id),
            object_id: dispute.id.clone(),
            kind: EffectKind::DisputeReinstated,
            amount_minor: self.payment.captured_minor_at(won_s),
            currency: self.payment.currency,
            occurred_us: won_s * SECOND_US,
            applied_us: applied_us.min(world.until_us - SECOND_US),
            event_id: String::new(),
            corrects: String::new(),
        });
    }

    /// Rows and statuses that no delivery explains.
    pub(super) fn finish(&mut self, deliveries: &[Delivery<'_>]) {
        for one in self.sabotage {
            match one {
                Sabotage::Row(row) => self.add_row(row),
                Sabotage::StateEndsAs(status, after_s) => {
                    let word = deliveries.iter().find(|delivery| delivery.event.status == Some(*status));
                    let first = deliveries.first();
                    let (Some(first), Some(last)) = (first, deliveries.last()) else { continue };
                    let updated_us = match word {
                        _ if *after_s >= 0 => last.at_us + after_s * SECOND_US,
                        Some(delivery) => delivery.at_us,
                        None => first.at_us - SECOND_US,
                    };
                    self.set_state(word.unwrap_or(first), *status);
                    if let Some(state) = &mut self.state {
                        state.updated_us = updated_us;
                    }
                }
                _ => {}
            }
        }
    }

    fn add_row(&mut self, extra: &ExtraRow) {
        let corrects = match self.ledger.get(1) {
            Some(second) if extra.undoes_second => second.entry_id.clone(),
            _ => String::new(),
        };
        self.ledger.push(LedgerRow {
            entry_id: format!("{}#{}", self.payment.root_id(), self.ledger.len()),
            effect_key: String::new(),
            object_id: extra.object_id.clone(),
            kind: extra.kind,
            amount_minor: extra.amount_minor,
            currency: extra.currency,
            occurred_us: extra.at_s * SECOND_US,
            applied_us: extra.at_s * SECOND_US,
            event_id: extra.event_id.clone(),
            corrects,
        });
    }
}
