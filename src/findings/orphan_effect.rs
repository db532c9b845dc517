//! # What it flags
//! A local effect that the provider, asked for that very id on the right account, does not have: it does
//! not know the object (cause `object_unknown`), or it knows the object and no such money moved (cause
//! `effect_unknown`: a refund that failed, the released rest of an authorisation booked as a refund).
//!
//! # Why it matters
//! A balance that no money stands behind.
//!
//! # Usual causes
//! Test data in the live books, a booking for another account, a failed refund that was never undone.
//!
//! # What to do
//! A person decides; the finding names the rows.

use super::judge::Context;
use super::{Action, Finding, Kind, Row, Severity, Unit};
use std::collections::BTreeMap;

/// The unit has rows and no effect at the provider: one finding a currency.
pub(super) fn orphan_effects(context: &Context, unit: &Unit) -> Vec<Finding> {
    let mut by_currency: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &unit.rows {
        by_currency.entry(&row.currency).or_default().push(row);
    }
    let explains = unit.explains();
    let explained =
        |currency: &str| explains.iter().filter(|(found, _)| found == currency).cloned().collect();
    by_currency
        .into_iter()
        .map(|(currency, rows)| Finding {
            cause: if unit.is_object_known { "effect_unknown" } else { "object_unknown" }.to_owned(),
            severity: if context.provider_was_asked { Severity::Critical } else { Severity::Minor },
            event_ids: rows.iter().map(|row| row.event_id.clone()).filter(|id| !id.is_empty()).collect(),
            effect_ids: rows.iter().map(|row| row.effect_id.clone()).collect(),
            currency: currency.to_owned(),
            expected_minor: Some(0),
            found_minor: Some(rows.iter().map(|row| row.net_minor).sum()),
            explains: explained(currency),
            action: Action::Review,
            note: note(context, unit),
            ..Finding::on_unit(Kind::OrphanEffect, unit)
        })
        .collect()
}

fn note(context: &Context, unit: &Unit) -> String {
    let known =
        if unit.is_object_known { "knows the payment and no such money moved" } else { "does not know it" };
    if context.provider_was_asked {
        format!("the provider {known}")
    } else {
        format!("in what was read the provider {known}; it was not asked again by id")
    }
}
