//! # What it flags
//! A local effect that the provider, asked for that very id on the right account, does not have: it does
//! not know the object (cause `object_unknown`), or it knows the object and no such money moved (cause
//! `effect_unknown`: a refund that failed, the released rest of an authorisation booked as a refund). What
//! could not be asked for (offline, or without the permission) and stands in no list that was read is not
//! judged: `counted.not_judged` in `manifest.json` says how much that is.
//!
//! # Why it matters
//! A balance that no money stands behind.
//!
//! # Usual causes
//! Test data in the live books, a booking for another account, a failed refund that was never undone.
//!
//! # What to do
//! A person looks its object up in the provider's dashboard, in the other mode and the other accounts too. Where it is
//! nowhere, the row named in `effect_ids` is booked back: in recon's ledger by [the statement of the on-call page](on-call.md#4-undo),
//! in tables of your own as those are reversed. Where it is somewhere else, the scope of the row is wrong.

use super::judge::Context;
use super::{Action, Finding, Kind, Row, Severity, Unit};

/// The unit has rows and no effect at the provider: one finding a currency.
pub(super) fn orphan_effects(context: &Context, unit: &Unit) -> Vec<Finding> {
    let explains = unit.explains();
    let is_booked = |currency: &str| unit.totals.contains_key(currency);
    let booked = unit.totals.iter().enumerate().map(|(index, (currency, (_, found_minor)))| {
        let rows: Vec<&Row> = unit.rows.iter().filter(|row| row.currency == *currency).collect();
        // What the window cuts of a currency with nothing left in it goes with the first finding.
        let explained = |(found, _): &&(String, i64)| found == currency || (index == 0 && !is_booked(found));
        Finding {
            cause: if unit.is_object_known { "effect_unknown" } else { "object_unknown" }.to_owned(),
            severity: if context.provider_was_asked { Severity::Critical } else { Severity::Minor },
            event_ids: rows.iter().map(|row| row.event_id.clone()).filter(|id| !id.is_empty()).collect(),
            effect_ids: rows.iter().map(|row| row.effect_id.clone()).collect(),
            currency: currency.clone(),
            expected_minor: Some(0),
            found_minor: Some(*found_minor),
            explains: explains.iter().filter(explained).cloned().collect(),
            action: Action::Review,
            note: note(context, unit),
            ..Finding::on_unit(Kind::OrphanEffect, unit)
        }
    });
    booked.collect()
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
