//! # What it flags
//! Two successful charges at the *provider* for one business intent: the same invoice, the same payment
//! intent, or the same value at the configured `intent` path. One of them lies in the window; the other may
//! have been made at any time that any run has read. Charges that were given back in full, by
//! refunds or by disputes that stand, do not count. Payments that each paid a part of one invoice are one
//! charge, as long as they are no more than what was due. Where the amounts differ it is `needs_review` with
//! cause `two_charges_one_intent`.
//!
//! # Why it matters
//! The customer paid twice, whatever the books say.
//!
//! # Usual causes
//! A retry with a fresh idempotency key after a lost answer, a double click, two workers on one order.
//! Or `intent` names a customer or a subscription instead of one purchase: then every renewal is found.
//!
//! # What to do
//! A person opens the charges that the note names in the provider's dashboard, asks whether both were wanted, and refunds the later
//! one there; the next run sees the refund. Nothing is booked by hand: both charges are in the books, and so will the refund be.

use super::{Action, Finding, Group, Kind, Severity};
use crate::record::{EffectKind, Scope};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Charge {
    object_id: String,
    root_id: String,
    amount_minor: i64,
    occurred_at_us: i64,
    in_window: bool,
}

/// Credits by intent, gathered over all groups that the comparison handed over.
#[derive(Debug, Default)]
pub struct Intents {
    charges: BTreeMap<(Scope, String, String), Vec<Charge>>,
}

impl Intents {
    /// Notes a group's credits that have an intent and were not given back in full. Refunds do not name
    /// their charge here: what was given back is set against the smallest charges first (of equal ones the
    /// latest), as far as it covers them whole: nobody is accused who may have all of it back. The group must hold each effect once.
    pub fn add(&mut self, scope: &Scope, root_id: &str, group: &Group) {
        let of_kind =
            |kind: EffectKind| group.provider_effects.iter().filter(move |effect| effect.kind == kind);
        let mut given_back: BTreeMap<&str, i64> = BTreeMap::new();
        // A lost dispute gives the customer the money back as a refund does.
        for effect in of_kind(EffectKind::Refund).chain(of_kind(EffectKind::DisputeWithdrawn)) {
            *given_back.entry(&effect.currency).or_default() += effect.amount_minor;
        }
        for effect in of_kind(EffectKind::DisputeReinstated) {
            *given_back.entry(&effect.currency).or_default() -= effect.amount_minor;
        }
        let mut credits: Vec<_> = of_kind(EffectKind::Credit).collect();
        credits.sort_by_key(|effect| {
            (effect.amount_minor, Reverse(effect.occurred_at_us), Reverse(&effect.object_id))
        });
        for effect in credits {
            let left = given_back.entry(&effect.currency).or_default();
            *left -= effect.amount_minor;
            if *left >= 0 || effect.intent.is_empty() {
                continue;
            }
            let key = (scope.clone(), effect.intent.clone(), effect.currency.clone());
            self.charges.entry(key).or_default().push(Charge {
                object_id: effect.object_id.clone(),
                root_id: root_id.to_owned(),
                amount_minor: effect.amount_minor,
                occurred_at_us: effect.occurred_at_us,
                in_window: effect.in_window,
            });
        }
    }

    /// The charges (scope, root, charge) of every intent that a finding would be made for.
    #[must_use]
    pub fn doubled(&self) -> BTreeSet<(Scope, String, String)> {
        let doubled = self.charges.iter().filter(|(_, charges)| is_doubled(charges));
        doubled
            .flat_map(|((scope, _, _), charges)| {
                charges.iter().map(|charge| (scope.clone(), charge.root_id.clone(), charge.object_id.clone()))
            })
            .collect()
    }

    /// One finding for each intent that was charged more than once, a charge of the window among them.
    #[must_use]
    pub fn findings(mut self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for ((scope, intent, currency), charges) in &mut self.charges {
            charges.sort_by(|a, b| (a.occurred_at_us, &a.object_id).cmp(&(b.occurred_at_us, &b.object_id)));
            if !is_doubled(charges) {
                continue;
            }
            let [first, rest @ ..] = charges.as_slice() else { continue };
            let total: i64 = charges.iter().map(|charge| charge.amount_minor).sum();
            let is_same = rest.iter().all(|charge| charge.amount_minor == first.amount_minor);
            let last = &rest[rest.len() - 1];
            let ids: Vec<&str> = charges.iter().map(|charge| charge.object_id.as_str()).collect();
            let kind = if is_same { Kind::DuplicateCharge } else { Kind::NeedsReview };
            findings.push(Finding {
                cause: if is_same { String::new() } else { "two_charges_one_intent".to_owned() },
                severity: if is_same { Severity::Critical } else { Severity::Minor },
                currency: currency.clone(),
                expected_minor: Some(first.amount_minor),
                found_minor: Some(total),
                action: Action::Review,
                note: format!("charges {} were all made for {intent}", ids.join(", ")),
                ..Finding::on_object(kind, scope, &last.root_id, &last.object_id, last.occurred_at_us)
            });
        }
        findings
    }
}

/// More than one, at whatever time, and one of the window among them.
fn is_doubled(charges: &[Charge]) -> bool {
    charges.len() > 1 && charges.iter().any(|charge| charge.in_window)
}
