//! # What it flags
//! The same effect on both sides with other amounts. Cause `rounding` where it is at most one minor unit
//! a line, `factor=10` or `factor=100` where one side is the other times that, `refunded_total` where the
//! refunds agree one by one and the local running total does not. On an invoice that several payments paid
//! it is what the books have there against those payments together.
//!
//! # Why it matters
//! A hundred-fold refund is a disaster; a cent a day is a month end that never ties out.
//!
//! # Usual causes
//! A currency without decimals scaled by 100, a cumulative `amount_refunded` booked as a delta, the
//! authorised amount booked instead of the captured one, tax rounded a line at a time.
//!
//! # What to do
//! The provider's amount is the authority. A person looks at what the handler made of it (factor, rounding, authorised instead of
//! captured), and books the difference as an entry of its own ([how](on-call.md#4-undo); in tables of your own as you adjust those).
//! For `refunded_total` the status row's running total is corrected.

use super::{Action, Finding, Group, Kind, Severity, Unit};
use crate::record::{EffectKind, LocalState, Scope};

/// Both sides have the unit, in one currency, with other totals.
pub(super) fn amount_mismatch(unit: &Unit) -> Option<Finding> {
    let (expected, found) = (unit.expected_minor(), unit.found_minor());
    if expected == found {
        return None;
    }
    let cause = cause(expected, found, unit.lines.max(1));
    Some(Finding {
        severity: if cause == "rounding" { Severity::Minor } else { Severity::Critical },
        cause: cause.to_owned(),
        action: Action::Review,
        note: match cause {
            "rounding" => "at most one minor unit a line".to_owned(),
            "" => "the amounts differ".to_owned(),
            factor => format!("one side is the other times ten or a hundred ({factor})"),
        },
        ..Finding::on_unit(Kind::AmountMismatch, unit)
    })
}

fn cause(expected: i64, found: i64, lines: usize) -> &'static str {
    let lines = i64::try_from(lines).unwrap_or(i64::MAX);
    let is_times = |factor: i64| {
        let scaled = |from: i64, to: i64| from != 0 && from.checked_mul(factor) == Some(to);
        scaled(expected, found) || scaled(found, expected)
    };
    match (expected - found).abs() {
        difference if difference <= lines => "rounding",
        _ if is_times(100) => "factor=100",
        _ if is_times(10) => "factor=10",
        _ => "",
    }
}

/// The refunds agree and the local row's running total does not.
pub(super) fn refunded_total(
    scope: &Scope,
    root_id: &str,
    group: &Group,
    state: &LocalState,
) -> Option<Finding> {
    let found = state.refunded_minor?;
    let said =
        group.provider_states.iter().filter_map(|said| said.refunded_minor.map(|minor| (minor, said.at_us)));
    let (expected, at_us) = said.max()?;
    if expected == found {
        return None;
    }
    let credits = group.provider_effects.iter().filter(|effect| effect.kind == EffectKind::Credit);
    let currency = credits.map(|effect| effect.currency.as_str()).min();
    Some(Finding {
        cause: "refunded_total".to_owned(),
        currency: currency.unwrap_or_default().to_owned(),
        expected_minor: Some(EffectKind::Refund.sign() * expected),
        found_minor: Some(EffectKind::Refund.sign() * found),
        action: Action::Review,
        note: "the local running total of refunds differs from the provider's".to_owned(),
        ..Finding::on_object(Kind::AmountMismatch, scope, root_id, &state.object_id, at_us)
    })
}
