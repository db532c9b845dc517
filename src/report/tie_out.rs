//! `tie_out.csv`: both sides' totals per (scope, currency, effect kind), and which findings explain
//! the difference. `unexplained_minor` must be 0; a run in which it is not says so loudly, because
//! then a rule has missed something and no other number of the run can be trusted.
//!
//! All amounts are signed as they move the balance, so a column adds up within one currency.

use super::Exponent;
use super::cell::{Cell, Column, Holds, Style};
use super::sheet::{Sheet, join_ids};
use crate::findings::Finding;
use crate::record::{EffectKind, Scope};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Columns of `tie_out.csv`.
pub const COLUMNS: [Column; 12] = [
    Column::new("provider", Holds::Text),
    Column::new("account", Holds::Id),
    Column::new("mode", Holds::Text),
    Column::new("currency", Holds::Text),
    Column::new("effect_kind", Holds::Text),
    Column::new("provider_minor", Holds::Minor),
    Column::new("local_minor", Holds::Minor),
    Column::new("difference_minor", Holds::Minor),
    Column::new("explained_minor", Holds::Minor),
    Column::new("explained_by", Holds::Id),
    Column::new("in_flight_minor", Holds::Minor),
    Column::new("unexplained_minor", Holds::Minor),
];

/// Running totals, fed by a run in any order and from any number of threads ([`Self::merge`]).
#[derive(Clone, Debug, Default)]
pub struct TieOutInput {
    /// Where a (scope, currency) stands in `lines`.
    index: BTreeMap<Scope, BTreeMap<String, usize>>,
    lines: Vec<BTreeMap<EffectKind, Line>>,
}

/// 128 bits hold the sum of 2^64 amounts of 64 bits, so a running total cannot overflow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    provider: i128,
    local: i128,
    in_flight: i128,
    explained: i128,
    explained_by: BTreeSet<String>,
}

/// One row of `tie_out.csv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TieOutRow {
    /// Scope.
    pub scope: Scope,
    /// Lower-case ISO code.
    pub currency: String,
    /// Effect kind.
    pub effect: EffectKind,
    /// The provider's total in the window.
    pub provider_minor: i64,
    /// The local total in the window.
    pub local_minor: i64,
    /// Provider minus local.
    pub difference_minor: i64,
    /// What findings say of it.
    pub explained_minor: i64,
    /// Ids of those findings, sorted.
    pub explained_by: Vec<String>,
    /// What effects that are too young to judge make of it.
    pub in_flight_minor: i64,
    /// What nothing explains.
    pub unexplained_minor: i64,
}

impl TieOutInput {
    /// Adds an effect of the provider that lies in the window. `signed` = kind's sign × magnitude.
    pub fn add_provider(&mut self, scope: &Scope, currency: &str, kind: EffectKind, signed: i64) {
        self.line(scope, currency, kind).provider += i128::from(signed);
    }

    /// Adds a local row that lies in the window. `signed` = kind's sign × its amount (which is
    /// negative for the undoing of an earlier row).
    pub fn add_local(&mut self, scope: &Scope, currency: &str, kind: EffectKind, signed: i64) {
        self.line(scope, currency, kind).local += i128::from(signed);
    }

    /// Adds a difference that is counted as in flight instead of found: *provider minus local* of the
    /// unit, so `+` the provider's signed amount, or `−` the local one where the provider's record is
    /// not visible yet. The amounts themselves are added as well.
    pub fn add_in_flight(&mut self, scope: &Scope, currency: &str, kind: EffectKind, difference: i64) {
        self.line(scope, currency, kind).in_flight += i128::from(difference);
    }

    /// Adds what a finding explains. Findings without an effect or without money explain nothing; one
    /// whose local amount is in another currency explains a part of each currency's line.
    pub fn add_finding(&mut self, finding: &Finding) {
        let Some(kind) = finding.effect else { return };
        for (currency, minor) in &finding.explains {
            let line = self.line(&finding.scope, currency, kind);
            line.explained += i128::from(*minor);
            line.explained_by.insert(finding.id());
        }
    }

    /// Adds everything that another thread has counted.
    pub fn merge(&mut self, other: &Self) {
        for (scope, currencies) in &other.index {
            for (currency, at) in currencies {
                for (kind, theirs) in &other.lines[*at] {
                    let ours = self.line(scope, currency, *kind);
                    ours.provider += theirs.provider;
                    ours.local += theirs.local;
                    ours.in_flight += theirs.in_flight;
                    ours.explained += theirs.explained;
                    ours.explained_by.extend(theirs.explained_by.iter().cloned());
                }
            }
        }
    }

    /// The rows, by (provider, account, mode, currency, effect kind).
    ///
    /// # Errors
    /// When a total leaves 64 bits; names the line.
    pub fn rows(&self) -> Result<Vec<TieOutRow>> {
        let mut rows = Vec::new();
        for (scope, currencies) in &self.index {
            for (currency, at) in currencies {
                for (kind, line) in &self.lines[*at] {
                    rows.push(line.row(scope, currency, *kind)?);
                }
            }
        }
        Ok(rows)
    }

    /// Called once for each effect, so it looks up by reference and makes keys once a line.
    fn line(&mut self, scope: &Scope, currency: &str, kind: EffectKind) -> &mut Line {
        let known = self.index.get(scope).and_then(|currencies| currencies.get(currency)).copied();
        let at = known.unwrap_or_else(|| {
            self.lines.push(BTreeMap::new());
            let at = self.lines.len() - 1;
            self.index.entry(scope.clone()).or_default().insert(currency.to_owned(), at);
            at
        });
        self.lines[at].entry(kind).or_default()
    }
}

impl Line {
    fn row(&self, scope: &Scope, currency: &str, kind: EffectKind) -> Result<TieOutRow> {
        let minor = |total: i128, what: &str| {
            i64::try_from(total).with_context(|| {
                format!("add up {what} of {scope}, {kind} in {currency}: {total} leaves 64 bits")
            })
        };
        let difference = self.provider - self.local;
        Ok(TieOutRow {
            scope: scope.clone(),
            currency: currency.to_owned(),
            effect: kind,
            provider_minor: minor(self.provider, "the provider's total")?,
            local_minor: minor(self.local, "the local total")?,
            difference_minor: minor(difference, "the difference")?,
            explained_minor: minor(self.explained, "the findings")?,
            explained_by: self.explained_by.iter().cloned().collect(),
            in_flight_minor: minor(self.in_flight, "what is in flight")?,
            unexplained_minor: minor(difference - self.explained - self.in_flight, "the unexplained rest")?,
        })
    }
}

/// Whether nothing is unexplained.
#[must_use]
pub fn is_tied_out(rows: &[TieOutRow]) -> bool {
    rows.iter().all(|row| row.unexplained_minor == 0)
}

/// The file's bytes and row count.
///
/// # Errors
/// When the CSV writer refuses.
pub fn render(rows: &[TieOutRow], style: Style, exponent: Exponent<'_>) -> Result<(Vec<u8>, u64)> {
    let mut sheet = Sheet::new(style, &COLUMNS)?;
    for row in rows {
        let decimals = exponent(&row.scope.provider, &row.currency);
        let explained_by = join_ids(row.explained_by.iter().map(String::as_str), style);
        sheet.push(&[
            Cell::Text(&row.scope.provider),
            Cell::Id(&row.scope.account),
            Cell::Text(&row.scope.mode),
            Cell::Text(&row.currency),
            Cell::Text(row.effect.as_str()),
            Cell::Minor(row.provider_minor, decimals),
            Cell::Minor(row.local_minor, decimals),
            Cell::Minor(row.difference_minor, decimals),
            Cell::Minor(row.explained_minor, decimals),
            Cell::Id(&explained_by),
            Cell::Minor(row.in_flight_minor, decimals),
            Cell::Minor(row.unexplained_minor, decimals),
        ])?;
    }
    sheet.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Action, Kind, Severity};

    fn finding(kind: Kind, currency: &str, expected: Option<i64>, found: Option<i64>) -> Finding {
        Finding {
            kind,
            cause: String::new(),
            severity: Severity::Critical,
            scope: Scope::new("stripe", "", "live"),
            object_id: "ch_1".to_owned(),
            root_id: "pi_1".to_owned(),
            effect: Some(EffectKind::Credit),
            event_ids: Vec::new(),
            effect_ids: Vec::new(),
            currency: currency.to_owned(),
            found_currency: String::new(),
            target_state: None,
            explains: vec![(currency.to_owned(), expected.unwrap_or(0) - found.unwrap_or(0))],
            expected_minor: expected,
            found_minor: found,
            expected_state: None,
            found_state: None,
            occurred_at_us: 0,
            judged_at_us: 0,
            action: Action::Review,
            note: String::new(),
        }
    }

    #[test]
    fn every_difference_is_explained_or_shown() {
        let scope = Scope::new("stripe", "", "live");
        let mut input = TieOutInput::default();
        for signed in [5_000, 5_000, 700] {
            input.add_provider(&scope, "brl", EffectKind::Credit, signed);
        }
        input.add_local(&scope, "brl", EffectKind::Credit, 5_000);
        input.add_in_flight(&scope, "brl", EffectKind::Credit, 700);
        let missed = finding(Kind::MissedEvent, "brl", Some(5_000), None);
        assert!(!is_tied_out(&input.rows().unwrap()));
        assert_eq!(input.rows().unwrap()[0].unexplained_minor, 5_000);
        input.add_finding(&missed);
        let rows = input.rows().unwrap();
        assert!(is_tied_out(&rows));
        assert_eq!(
            (rows[0].difference_minor, rows[0].explained_minor, rows[0].in_flight_minor),
            (5_700, 5_000, 700)
        );
        assert_eq!(rows[0].explained_by, [missed.id()]);
        let stateful = Finding { effect: None, ..missed };
        input.add_finding(&stateful);
        assert_eq!(input.rows().unwrap(), rows, "a finding without an effect explains nothing");
    }

    #[test]
    fn c48_a_booking_in_another_currency_explains_both_lines_and_no_sum_crosses() {
        let scope = Scope::new("stripe", "", "live");
        let mut input = TieOutInput::default();
        input.add_provider(&scope, "jpy", EffectKind::Credit, 9_000);
        input.add_local(&scope, "usd", EffectKind::Credit, 9_000);
        let mut mismatch = finding(Kind::CurrencyMismatch, "jpy", Some(9_000), Some(9_000));
        mismatch.found_currency = "usd".to_owned();
        mismatch.explains = vec![("jpy".to_owned(), 9_000), ("usd".to_owned(), -9_000)];
        assert_eq!(mismatch.difference_minor(), Some(9_000));
        input.add_finding(&mismatch);
        let rows = input.rows().unwrap();
        let lines: Vec<_> = rows
            .iter()
            .map(|row| (&*row.currency, row.difference_minor, row.explained_minor, row.unexplained_minor))
            .collect();
        assert_eq!(lines, [("jpy", 9_000, 9_000, 0), ("usd", -9_000, -9_000, 0)]);
    }

    #[test]
    fn order_and_threads_do_not_show() {
        let scopes = [Scope::new("stripe", "acct_2", "live"), Scope::new("stripe", "", "live")];
        let mut whole = TieOutInput::default();
        let mut halves = [TieOutInput::default(), TieOutInput::default()];
        for number in 0..40_i64 {
            let scope = &scopes[usize::from(number % 3 == 0)];
            let kind = if number % 2 == 0 { EffectKind::Credit } else { EffectKind::Refund };
            whole.add_provider(scope, "brl", kind, number);
            halves[usize::from(number % 5 == 0)].add_provider(scope, "brl", kind, number);
        }
        let [mut first, second] = halves;
        first.merge(&second);
        assert_eq!(first.rows().unwrap(), whole.rows().unwrap());
        assert_eq!(whole.rows().unwrap()[0].scope, scopes[1]);
    }

    #[test]
    fn a_total_beyond_64_bits_is_an_error_that_names_its_line() {
        let scope = Scope::new("stripe", "", "live");
        let mut input = TieOutInput::default();
        input.add_provider(&scope, "brl", EffectKind::Credit, i64::MAX);
        input.add_provider(&scope, "brl", EffectKind::Credit, 1);
        let error = input.rows().unwrap_err().to_string();
        assert_eq!(
            error,
            "add up the provider's total of stripe//live, credit in brl: 9223372036854775808 leaves 64 bits"
        );
        input.add_provider(&scope, "brl", EffectKind::Credit, -1);
        assert_eq!(input.rows().unwrap()[0].provider_minor, i64::MAX, "on the way it may");
    }
}
