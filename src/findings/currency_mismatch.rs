//! # What it flags
//! The same effect booked in another currency, even where the number is equal.
//!
//! # Why it matters
//! 9000 yen are not 9000 dollars, and every total that holds the row is wrong.
//!
//! # Usual causes
//! The number of the presentment currency stored under the label of the settlement currency.
//!
//! # What to do
//! A person books each row of `effect_ids` back ([how](on-call.md#4-undo); in tables of your own as those are reversed) and books
//! `expected_minor` in `currency` instead; every currency and every amount stands in the note. Where the books have it in several
//! wrong currencies, the first is set against the provider's amount and each further one is a row of its own.

use super::{Action, Finding, Kind, Unit};

/// Both sides have the unit, in more than one currency: one finding for the provider's currency against
/// the first that the books alone have, and one for every other currency in which the sides differ, so that
/// each amount stands in exactly one row. What is booked in the right currency is taken off the expected
/// amount of the first, so that its difference is what is still missing there.
pub(super) fn currency_mismatch(unit: &Unit) -> Vec<Finding> {
    if unit.totals.len() < 2 {
        return Vec::new();
    }
    let currency = unit.currency();
    let wrong = unit.totals.iter().find(|(_, (provider, local))| *provider == 0 && *local != 0);
    let is_apart = |found: &str| wrong.is_none_or(|(wrong, _)| found != wrong && found != currency);
    let whole = Finding {
        action: Action::Review,
        note: note(unit),
        ..Finding::on_unit(Kind::CurrencyMismatch, unit)
    };
    let rows_in = |is_meant: &dyn Fn(&str) -> bool| -> Vec<String> {
        let rows = unit.rows.iter().filter(|row| is_meant(&row.currency));
        rows.map(|row| row.effect_id.clone()).collect()
    };
    let mut findings: Vec<Finding> = wrong
        .into_iter()
        .map(|(found_currency, (_, found))| Finding {
            found_currency: found_currency.clone(),
            expected_minor: Some(unit.expected_minor() - unit.found_minor()),
            found_minor: Some(*found),
            effect_ids: rows_in(&|row| !is_apart(row)),
            ..whole.clone()
        })
        .collect();
    let apart = unit.totals.iter().filter(|(found, (provider, local))| is_apart(found) && provider != local);
    findings.extend(apart.map(|(found, (provider, local))| Finding {
        currency: found.clone(),
        expected_minor: Some(*provider),
        found_minor: Some(*local),
        effect_ids: rows_in(&|row| row == found),
        ..whole.clone()
    }));
    share_explanations(&whole, &mut findings);
    findings
}

/// Each further finding explains its own currency of the tie-out; the first one explains what is left.
fn share_explanations(whole: &Finding, findings: &mut [Finding]) {
    let Some((first, further)) = findings.split_first_mut() else { return };
    first.explains.clone_from(&whole.explains);
    for finding in further {
        let currency = &finding.currency;
        first.explains.retain(|(explained, _)| explained != currency);
        finding.explains.retain(|(explained, _)| explained == currency);
    }
}

/// Every amount of both sides.
fn note(unit: &Unit) -> String {
    let amounts = |of: &dyn Fn(&(i64, i64)) -> i64| {
        let first = unit.totals.get_key_value(unit.currency());
        let others = unit.totals.iter().filter(|(currency, _)| *currency != unit.currency());
        let amounts = first.into_iter().chain(others).map(|(currency, totals)| (of(totals), currency));
        let words: Vec<String> = amounts
            .filter(|(minor, _)| *minor != 0)
            .map(|(minor, currency)| format!("{minor} {currency}"))
            .collect();
        words.join(" and ")
    };
    format!(
        "the provider has {}, the books have {}",
        amounts(&|(provider, _)| *provider),
        amounts(&|(_, local)| *local)
    )
}
