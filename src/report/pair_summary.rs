//! What `recon compare` prints: both sides' totals, what explains their difference, and the first differences.
//!
//! Totals come from the rows as they were read and explanations from the differences; where the two do not agree, the
//! comparison is wrong and says so.

use super::Outcome;
use super::differences_csv::{Names, at, cause, key};
use crate::compare::{Difference, DifferenceKind, PairSums, Seen};
use crate::record::decimal_from_minor;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Differences that are printed.
const SHOWN_MAX: usize = 20;

/// What differences come to in one currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Explained {
    findings: u64,
    net_minor: i128,
}

/// One side as it was named.
#[derive(Clone, Copy, Debug)]
pub struct SideTold<'a> {
    /// Path or pattern.
    pub name: &'a str,
    /// Files that it is.
    pub files: usize,
}

/// Adds up what is found.
#[derive(Debug, Default)]
pub struct PairSummary {
    findings: u64,
    left_rows: u64,
    right_rows: u64,
    by_kind: BTreeMap<(DifferenceKind, u16), Explained>,
    first: Vec<String>,
}

impl PairSummary {
    /// Takes a difference.
    pub fn add(&mut self, difference: &Difference, names: &impl Names) {
        self.findings += 1;
        self.left_rows += u64::from(difference.left.is_some());
        self.right_rows += u64::from(difference.right.is_some());
        let mut net: BTreeMap<u16, i128> = BTreeMap::new();
        for (seen, sign) in [(&difference.left, 1), (&difference.right, -1)] {
            if let Some(seen) = seen {
                *net.entry(seen.currency).or_default() += sign * i128::from(seen.amount_minor);
            }
        }
        for (currency, minor) in net {
            let explained = self.by_kind.entry((difference.kind, currency)).or_default();
            explained.findings += 1;
            explained.net_minor += minor;
        }
        if self.first.len() < SHOWN_MAX {
            self.first.push(line(difference, names));
        }
    }

    fn explained(&self, currency: u16) -> i128 {
        let of_currency = self.by_kind.iter().filter(|((_, number), _)| *number == currency);
        of_currency.map(|(_, explained)| explained.net_minor).sum()
    }

    /// Whether every row is paired or found, and every difference explained.
    #[must_use]
    pub fn is_tied_out(&self, sums: &[PairSums], matched: u64) -> bool {
        let rows = |of: fn(&PairSums) -> u64| sums.iter().map(of).sum::<u64>();
        let is_explained =
            |(number, sums): (u16, &PairSums)| sums.left_minor - sums.right_minor == self.explained(number);
        rows(|sums| sums.left_rows) == matched + self.left_rows
            && rows(|sums| sums.right_rows) == matched + self.right_rows
            && (0..).zip(sums).all(is_explained)
    }

    /// How the comparison ends.
    #[must_use]
    pub fn outcome(&self, sums: &[PairSums], matched: u64) -> Outcome {
        let findings = usize::try_from(self.findings).unwrap_or(usize::MAX);
        Outcome::judge(findings, true, self.is_tied_out(sums, matched))
    }

    /// The text for stdout, its last line included.
    #[must_use]
    pub fn text(
        &self,
        sides: [SideTold<'_>; 2],
        sums: &[PairSums],
        matched: u64,
        names: &impl Names,
        out: Option<&str>,
    ) -> String {
        let rows = |of: fn(&PairSums) -> u64| sums.iter().map(of).sum::<u64>();
        let counts = [rows(|sums| sums.left_rows), rows(|sums| sums.right_rows)];
        let mut text = String::new();
        for ((side, word), count) in sides.iter().zip(["left ", "right"]).zip(counts) {
            let files = if side.files == 1 { String::new() } else { format!(" ({} files)", side.files) };
            // Writing to a String cannot fail.
            let rows = if count == 1 { "row" } else { "rows" };
            writeln!(text, "{word}  {}{files}: {count} {rows}", side.name).ok();
        }
        let rows = if matched == 1 { "row of each side has" } else { "rows of each side have" };
        writeln!(text, "       {matched} {rows} an equal one on the other").ok();
        text.push('\n');
        text.push_str(&self.totals(sums, names));
        if self.findings > 0 {
            text.push('\n');
            text.push_str(&self.kinds(names));
            text.push('\n');
            for line in &self.first {
                writeln!(text, "{line}").ok();
            }
            let left_out = self.findings - self.first.len() as u64;
            if left_out > 0 {
                let how = if out.is_some() { "in the file" } else { "--out FILE writes all of them" };
                writeln!(text, "… {left_out} more: {how}").ok();
            }
        }
        text.push('\n');
        let outcome = self.outcome(sums, matched);
        if outcome == Outcome::Incomplete {
            text.push_str(
                "The findings do not explain the difference: this answer is not to be relied on.\n",
            );
        }
        writeln!(
            text,
            "outcome={} findings={} left_rows={} right_rows={} matched={matched} report={}",
            outcome.as_str(),
            self.findings,
            counts[0],
            counts[1],
            out.unwrap_or_default()
        )
        .ok();
        text
    }

    fn totals(&self, sums: &[PairSums], names: &impl Names) -> String {
        let mut rows =
            vec![["currency", "left", "right", "difference", "explained", "unexplained"].map(str::to_owned)];
        for (number, sums) in (0..).zip(sums).filter(|(_, sums)| sums.left_rows + sums.right_rows > 0) {
            let (code, exponent) = names.currency(number);
            let (net, explained) = (sums.left_minor - sums.right_minor, self.explained(number));
            let amounts = [sums.left_minor, sums.right_minor, net, explained, net - explained];
            let [left, right, net, explained, rest] = amounts.map(|minor| decimal(minor, exponent));
            rows.push([code.to_owned(), left, right, net, explained, rest]);
        }
        table(&rows, 1)
    }

    fn kinds(&self, names: &impl Names) -> String {
        let mut rows = vec![["kind", "currency", "findings", "difference"].map(str::to_owned)];
        for ((kind, number), explained) in &self.by_kind {
            let (code, exponent) = names.currency(*number);
            let net = decimal(explained.net_minor, exponent);
            rows.push([kind.as_str().to_owned(), code.to_owned(), explained.findings.to_string(), net]);
        }
        table(&rows, 2)
    }
}

/// One difference in one line.
fn line(difference: &Difference, names: &impl Names) -> String {
    let shown = |side: &str, seen: &Seen| {
        let (code, exponent) = names.currency(seen.currency);
        let status = if seen.status.is_empty() { String::new() } else { format!(" {}", seen.status) };
        let amount = decimal_from_minor(seen.amount_minor, exponent);
        format!("{side} {amount} {code}{status} ({})", at(seen.place, names))
    };
    let left = difference.left.as_ref().map(|seen| shown("left", seen));
    let right = difference.right.as_ref().map(|seen| shown("right", seen));
    let repeats = difference.repeats.map(|place| format!("repeats {}", at(place, names)));
    let cause = Some(cause(difference)).filter(|cause| !cause.is_empty());
    let parts: Vec<String> = [left, right, repeats, cause].into_iter().flatten().collect();
    let key: String =
        key(&difference.key).chars().map(|letter| if letter.is_control() { '�' } else { letter }).collect();
    format!("{:<18}  {key}: {}", difference.kind.as_str(), parts.join(", "))
}

/// Minor units as decimal text, of sums wider than an amount.
fn decimal(minor: i128, exponent: u32) -> String {
    if let Ok(minor) = i64::try_from(minor) {
        return decimal_from_minor(minor, exponent);
    }
    let sign = if minor < 0 { "-" } else { "" };
    let scale = 10_u128.pow(exponent.min(18));
    let magnitude = minor.unsigned_abs();
    let width = usize::try_from(exponent).unwrap_or(18);
    if exponent == 0 {
        return format!("{sign}{magnitude}");
    }
    format!("{sign}{}.{:0width$}", magnitude / scale, magnitude % scale)
}

/// Columns side by side: the first `words` to the left, the others, which are numbers, to the right.
fn table<const N: usize>(rows: &[[String; N]], words: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if column < words { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
