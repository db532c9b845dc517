//! Planted against found: what the storyteller expects, held against the rows of a `findings.csv`.
//! Pure. Nothing is taken from the code that made the rows; only the file's columns are known here.

use super::faults::{Expected, Fault, Planted};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};

/// What is read of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundRow {
    /// `kind`.
    pub kind: String,
    /// `cause`.
    pub cause: String,
    /// `object_id`.
    pub object_id: String,
    /// `currency`.
    pub currency: String,
    /// `expected_minor`; 0 where empty.
    pub expected_minor: i64,
    /// `found_minor`; 0 where empty.
    pub found_minor: i64,
    /// `difference_minor`; 0 where empty.
    pub difference_minor: i64,
    /// `expected_state`.
    pub expected_state: String,
    /// `found_state`.
    pub found_state: String,
}

impl FoundRow {
    /// Whether it says exactly this.
    #[must_use]
    pub fn says(&self, expected: &Expected) -> bool {
        let word = |status: Option<crate::record::Status>| status.map_or("", |status| status.as_str());
        self.kind == expected.kind
            && self.object_id == expected.object_id
            && expected.cause.is_none_or(|cause| cause == self.cause)
            && self.currency == expected.currency
            && self.expected_minor == expected.expected_minor.unwrap_or(0)
            && self.found_minor == expected.found_minor.unwrap_or(0)
            && self.difference_minor == expected.difference_minor.unwrap_or(0)
            && self.expected_state == word(expected.expected_state)
            && self.found_state == word(expected.found_state)
    }
}

/// Reads a `findings.csv` in machine form.
///
/// # Errors
/// When a column is missing or an amount is no integer.
pub fn read_findings(bytes: &[u8]) -> Result<Vec<FoundRow>> {
    let mut reader = csv::Reader::from_reader(bytes);
    let headers = reader.headers().context("read the columns of findings.csv")?.clone();
    let column = |name: &str| {
        headers.iter().position(|header| header == name).with_context(|| format!("no column {name}"))
    };
    let texts = ["kind", "cause", "object_id", "currency", "expected_state", "found_state"];
    let [kind, cause, object_id, currency, expected_state, found_state] = texts.map(column);
    let [expected, found, difference] = ["expected_minor", "found_minor", "difference_minor"].map(column);
    let (kind, cause, object_id, currency) = (kind?, cause?, object_id?, currency?);
    let (expected_state, found_state) = (expected_state?, found_state?);
    let (expected, found, difference) = (expected?, found?, difference?);
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.context("read a row of findings.csv")?;
        let text = |at: usize| record.get(at).unwrap_or_default().to_owned();
        let minor = |at: usize| match record.get(at).unwrap_or_default() {
            "" => Ok(0),
            digits => digits.parse::<i64>().with_context(|| format!("`{digits}` is no amount")),
        };
        rows.push(FoundRow {
            kind: text(kind),
            cause: text(cause),
            object_id: text(object_id),
            currency: text(currency),
            expected_minor: minor(expected)?,
            found_minor: minor(found)?,
            difference_minor: minor(difference)?,
            expected_state: text(expected_state),
            found_state: text(found_state),
        });
    }
    Ok(rows)
}

/// One line of the table: a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Fault.
    pub fault: Fault,
    /// Kind that it must be found as; empty for scenes that must not be found.
    pub kind: &'static str,
    /// Scenes planted.
    pub planted: usize,
    /// Findings that must come of them.
    pub expected: usize,
    /// Findings that say exactly what was planted.
    pub found: usize,
}

/// Planted against found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// One line for each fault, in the order of [`Fault`].
    pub lines: Vec<Line>,
    /// Expected and not found.
    pub missed: Vec<Expected>,
    /// Found and not expected.
    pub invented: Vec<FoundRow>,
}

impl Verdict {
    /// Whether found is planted, exactly.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.missed.is_empty() && self.invented.is_empty()
    }
}

/// Holds the rows against what was planted. With `after_apply` only what a person must decide is
/// expected any more, and that corrections booked today stand outside of the closed window.
#[must_use]
pub fn judge(planted: &[Planted], rows: &[FoundRow], after_apply: bool) -> Verdict {
    let mut by_object: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        by_object.entry(&row.object_id).or_default().push(at);
    }
    let mut used: BTreeSet<usize> = BTreeSet::new();
    let mut lines: BTreeMap<Fault, Line> = BTreeMap::new();
    let mut missed = Vec::new();
    for one in planted {
        let list: Vec<Expected> = if after_apply {
            one.expected.iter().filter_map(Expected::after_apply).collect()
        } else {
            one.expected.clone()
        };
        let kind = list.first().map_or("", |expected| expected.kind);
        let line = lines.entry(one.fault).or_insert(Line {
            fault: one.fault,
            kind,
            planted: 0,
            expected: 0,
            found: 0,
        });
        line.planted += 1;
        for expected in &list {
            line.expected += 1;
            let candidates = by_object.get(&*expected.object_id).map_or(&[][..], Vec::as_slice);
            let hit = candidates.iter().copied().find(|at| !used.contains(at) && rows[*at].says(expected));
            if let Some(at) = hit {
                used.insert(at);
                line.found += 1;
            } else {
                missed.push(expected.clone());
            }
        }
    }
    let invented = (0..rows.len()).filter(|at| !used.contains(at)).map(|at| rows[at].clone()).collect();
    Verdict { lines: lines.into_values().collect(), missed, invented }
}

/// A few words for a fault, for the table.
#[must_use]
pub const fn title(fault: Fault) -> &'static str {
    match fault {
        Fault::MissedPayment => "every event of a payment lost",
        Fault::MissedRefund => "every event of a refund lost",
        Fault::MissedDispute => "every event of a dispute lost",
        Fault::NotSubscribed => "money back, type never subscribed",
        Fault::DeadLetter => "left as a dead letter",
        Fault::Parked => "left parked",
        Fault::MarkedProcessed => "marked as done, nothing booked",
        Fault::PendingTooLong => "left unprocessed",
        Fault::OlderThanEvents => "lost longer ago than events live",
        Fault::RefundWithoutEvents => "refund that never had an event",
        Fault::DuplicateDelivery => "delivered twice, booked twice",
        Fault::DuplicateTypes => "two event types, booked twice",
        Fault::DuplicateTriple => "delivered and booked three times",
        Fault::DuplicateRefund => "refund booked twice",
        Fault::ChargedTwiceForOrder => "customer charged twice, one order",
        Fault::ChargedTwiceForInvoice => "customer charged twice, one invoice",
        Fault::Misattributed => "booked on another payment",
        Fault::OrphanUnknown => "booked, unknown to the provider",
        Fault::OrphanFailedRefund => "refund failed later, still booked",
        Fault::AmountFactor100 => "yen scaled by a hundred",
        Fault::AmountFactor10 => "dinar scaled by ten",
        Fault::AmountRounding => "one unit off by rounding",
        Fault::AmountAuthorised => "authorised amount booked",
        Fault::AmountOther => "another amount booked",
        Fault::RefundCumulative => "running total booked as a refund",
        Fault::OtherCurrency => "right number, wrong currency",
        Fault::StalePending => "still pending, and paid",
        Fault::StalePaid => "still paid, and refunded in part",
        Fault::StaleDispute => "still disputed, and lost",
        Fault::PaidAfterRefunded => "refunded, then set back to paid",
        Fault::UnknownEvent => "event unknown to the provider",
        Fault::TestEvent => "test event in the live inbox",
        Fault::UnknownType => "event of a type nobody knows",
        Fault::BookedAfterWindow => "paid in the window, booked after",
        Fault::BookedInWindow => "paid before the window, booked in it",
        Fault::HarmlessDuplicates => "delivered four times, booked once",
        Fault::HarmlessOrder => "delivered in reverse, ends right",
        Fault::HarmlessSibling => "one of two events lost, booked",
        Fault::HarmlessReversal => "booked twice, already reversed",
        Fault::HarmlessEdge => "on the very edge of the window",
        Fault::InFlightYoung => "seconds old, not here yet",
        Fault::InFlightRetried => "still being delivered",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::EffectKind;

    const HEAD: &str = "finding_id,kind,cause,object_id,currency,expected_minor,found_minor,difference_minor,expected_state,found_state\n";

    fn planted() -> Vec<Planted> {
        let expected = Expected::money("missed_event", EffectKind::Credit, "ch_1", "usd", (500, 0));
        vec![Planted {
            fault: Fault::MissedPayment,
            payment: 0,
            root_id: "pi_1".to_owned(),
            expected: vec![expected.because("")],
            sabotage: Vec::new(),
        }]
    }

    fn judged(rows: &str, after_apply: bool) -> (usize, usize) {
        let rows = read_findings(format!("{HEAD}{rows}").as_bytes()).unwrap();
        let verdict = judge(&planted(), &rows, after_apply);
        (verdict.missed.len(), verdict.invented.len())
    }

    #[test]
    fn only_the_exact_row_counts() {
        assert_eq!(judged("f,missed_event,,ch_1,usd,500,,500,,\n", false), (0, 0));
        assert_eq!(judged("f,missed_event,,ch_1,usd,500,0,501,,\n", false), (1, 1));
        assert_eq!(judged("f,missed_event,not_subscribed,ch_1,usd,500,0,500,,\n", false), (1, 1));
        assert_eq!(judged("f,missed_event,,ch_1,eur,500,0,500,,\n", false), (1, 1));
        assert_eq!(judged("", false), (1, 0));
        let twice = "f,missed_event,,ch_1,usd,500,0,500,,\nf,missed_event,,ch_1,usd,500,0,500,,\n";
        assert_eq!(judged(twice, false), (0, 1));
    }

    #[test]
    fn what_apply_puts_right_is_a_matter_of_the_cut_off_afterwards() {
        let left = "f,timing_difference,cut_off,ch_1,usd,500,0,500,,\n";
        assert_eq!(judged(left, true), (0, 0));
        assert_eq!(judged("f,missed_event,,ch_1,usd,500,,500,,\n", true), (1, 1));
    }

    #[test]
    fn a_missing_column_is_named() {
        let error = read_findings(b"kind,cause\n").unwrap_err();
        assert!(error.to_string().contains("object_id"), "{error}");
    }
}
