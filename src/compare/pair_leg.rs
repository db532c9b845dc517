//! The leg of two sides: the rows of one key are paired, and what has no partner is a difference.
//!
//! A key is a multiset of (currency, amount, status) on each side. Equal rows are paired first; rows that both sides
//! have and one side has more often are duplicates and take part in nothing else, so that a double credit is never
//! told as a wrong amount. What only one side has is paired with the nearest that only the other has: first with
//! another status, then with another amount, then with another currency; what still has no partner is missing.
//! Pairing goes by the order of values, on one stack for each step, so a key may have any number of rows.

use crate::compact::split;
use super::leg::{Key, Leg};
use super::pair_record::{DifferenceKind, Parts, ends, is_left, put_difference};
use super::sorter::{Run, Sorter};
use super::stack::Stack;
use crate::spill::Spill;
use anyhow::Result;
use std::sync::Arc;

/// Takes differences, in any order.
#[derive(Debug)]
pub(super) struct PairSink {
    spill: Arc<Spill>,
    found: Sorter,
    matched: u64,
    record: Vec<u8>,
}

impl PairSink {
    /// An empty sink that uses about `bytes_max` of memory.
    pub(super) fn new(spill: Spill, bytes_max: usize) -> Self {
        let spill = Arc::new(spill);
        let found = Sorter::new(Arc::clone(&spill), bytes_max);
        Self { spill, found, matched: 0, record: Vec::new() }
    }

    fn push(&mut self, parts: &Parts<'_>) -> Result<()> {
        self.record.clear();
        put_difference(&mut self.record, parts)?;
        self.found.push(&self.record)
    }

    /// Sorted runs of the differences, and how many rows of each side were paired with an equal one.
    pub(super) fn finish(self) -> Result<(Vec<Run>, u64)> {
        Ok((self.found.finish()?, self.matched))
    }
}

/// Rows of one side that wait for a partner of the other.
#[derive(Debug, Default)]
struct Waiting {
    /// The last row, if any; nearly always the only one.
    last: Vec<u8>,
    /// The rows below it.
    below: Stack,
    is_left: bool,
    count: u64,
    /// The row taken last.
    taken: Vec<u8>,
}

impl Waiting {
    #[inline]
    fn push(&mut self, is_left: bool, row: &[u8], sink: &PairSink) -> Result<()> {
        self.is_left = is_left;
        if self.count > 0 {
            self.below.push(&self.last, &sink.spill)?;
        }
        self.count += 1;
        self.last.clear();
        self.last.extend_from_slice(row);
        Ok(())
    }

    /// Takes the row on top into `taken`; false where none waits.
    #[inline]
    fn take(&mut self, sink: &PairSink) -> Result<bool> {
        if self.count == 0 {
            return Ok(false);
        }
        self.count -= 1;
        std::mem::swap(&mut self.last, &mut self.taken);
        if self.count > 0 {
            self.below.pop(&mut self.last, &sink.spill)?;
        }
        Ok(true)
    }

    /// Pairs the row with one that waits on the other side, or lets it wait.
    fn offer(
        &mut self,
        kind: DifferenceKind,
        key: &[u8],
        (is_left, row): (bool, &[u8]),
        sink: &mut PairSink,
    ) -> Result<()> {
        if self.is_left == is_left || !self.take(sink)? {
            return self.push(is_left, row, sink);
        }
        let (left, right) = if is_left { (row, &*self.taken) } else { (&*self.taken, row) };
        sink.push(&Parts { key, kind, left, right, repeats: &[], is_key_on_both: true })
    }

    /// Hands all that wait to the next step.
    fn drain_into(
        &mut self,
        next: &mut Self,
        kind: DifferenceKind,
        key: &[u8],
        sink: &mut PairSink,
    ) -> Result<()> {
        while self.take(sink)? {
            next.offer(kind, key, (self.is_left, &self.taken), sink)?;
        }
        Ok(())
    }
}

/// The value at hand: what makes two rows the same.
#[derive(Debug, Default)]
struct Value {
    bytes: Vec<u8>,
    currency_end: usize,
    amount_end: usize,
    left_rows: u64,
    right_rows: u64,
    /// Places of the earliest row of each side.
    first_left: Vec<u8>,
    first_right: Vec<u8>,
}

/// One key, row by row.
#[derive(Debug, Default)]
pub(super) struct PairLeg {
    value: Value,
    has_left: bool,
    has_right: bool,
    /// Left rows of the value at hand.
    equals: Waiting,
    /// What only one side has: of this amount, of this currency, of this key.
    of_amount: Waiting,
    of_currency: Waiting,
    of_key: Waiting,
}

impl Leg for PairLeg {
    type Sink = PairSink;

    #[inline]
    fn row(&mut self, key: Key<'_>, rest: &[u8], sink: &mut PairSink) -> Result<()> {
        let ends = ends(rest)?;
        if self.value.bytes != rest[..ends.value] {
            self.end_value(key.text, sink)?;
            let known = &self.value;
            let is_same = |end: usize| known.bytes.get(..end) == rest.get(..end);
            let is_same_currency = known.currency_end > 0 && is_same(ends.currency);
            let is_same_amount = is_same_currency && known.amount_end == ends.amount && is_same(ends.amount);
            if !is_same_amount {
                self.end_amount(key.text, sink)?;
            }
            if !is_same_currency {
                self.end_currency(key.text, sink)?;
            }
            let value = &mut self.value;
            value.bytes.clear();
            value.bytes.extend_from_slice(&rest[..ends.value]);
            (value.currency_end, value.amount_end) = (ends.currency, ends.amount);
        }
        if ends.is_left {
            self.left(rest, ends.value, sink)
        } else {
            self.right(key.text, rest, ends.value, sink)
        }
    }

    /// Every value is there as often on the left as on the right.
    #[inline]
    fn settles<'r>(records: impl Iterator<Item = &'r [u8]>, sink: &mut PairSink) -> Result<bool> {
        let (mut value, mut more_left, mut rows): (&[u8], i64, u64) = (&[], 0, 0);
        for record in records {
            // Key and value say where they end, so a record that begins with one has that one.
            if value.is_empty() || !record.starts_with(value) {
                if more_left != 0 {
                    return Ok(false);
                }
                let keyed = split(record)?;
                value = &record[..keyed.prefix.len() + ends(keyed.rest)?.value];
            }
            more_left += if is_left(record, value.len())? { 1 } else { -1 };
            rows += 1;
        }
        if more_left != 0 {
            return Ok(false);
        }
        sink.matched += rows / 2;
        Ok(true)
    }

    fn end(&mut self, key: Key<'_>, sink: &mut PairSink) -> Result<()> {
        self.end_value(key.text, sink)?;
        self.end_amount(key.text, sink)?;
        self.end_currency(key.text, sink)?;
        let is_key_on_both = self.has_left && self.has_right;
        while self.of_key.take(sink)? {
            let row = &*self.of_key.taken;
            let key = key.text;
            sink.push(&if self.of_key.is_left {
                let kind = DifferenceKind::MissingOnRight;
                Parts { key, kind, left: row, right: &[], repeats: &[], is_key_on_both }
            } else {
                let kind = DifferenceKind::MissingOnLeft;
                Parts { key, kind, left: &[], right: row, repeats: &[], is_key_on_both }
            })?;
        }
        self.value.bytes.clear();
        (self.value.currency_end, self.value.amount_end) = (0, 0);
        (self.has_left, self.has_right) = (false, false);
        Ok(())
    }
}

impl PairLeg {
    /// Left rows come before right ones, the earliest last.
    fn left(&mut self, rest: &[u8], value_end: usize, sink: &PairSink) -> Result<()> {
        self.has_left = true;
        self.value.left_rows += 1;
        self.value.first_left.clear();
        self.value.first_left.extend_from_slice(&rest[value_end..]);
        self.equals.push(true, rest, sink)
    }

    /// Right rows come earliest first.
    fn right(&mut self, key: &[u8], rest: &[u8], value_end: usize, sink: &mut PairSink) -> Result<()> {
        self.has_right = true;
        self.value.right_rows += 1;
        if self.value.right_rows == 1 {
            self.value.first_right.clear();
            self.value.first_right.extend_from_slice(&rest[value_end..]);
        }
        if self.equals.take(sink)? {
            sink.matched += 1;
            return Ok(());
        }
        if self.value.left_rows == 0 {
            return self.of_amount.offer(DifferenceKind::StatusDiffers, key, (false, rest), sink);
        }
        let (kind, repeats) = (DifferenceKind::DuplicateOnRight, &*self.value.first_right);
        sink.push(&Parts { key, kind, left: &[], right: rest, repeats, is_key_on_both: true })
    }

    fn end_value(&mut self, key: &[u8], sink: &mut PairSink) -> Result<()> {
        if self.value.right_rows == 0 {
            self.equals.drain_into(&mut self.of_amount, DifferenceKind::StatusDiffers, key, sink)?;
        }
        while self.equals.take(sink)? {
            let (kind, repeats) = (DifferenceKind::DuplicateOnLeft, &*self.value.first_left);
            let left = &*self.equals.taken;
            sink.push(&Parts { key, kind, left, right: &[], repeats, is_key_on_both: true })?;
        }
        (self.value.left_rows, self.value.right_rows) = (0, 0);
        Ok(())
    }

    fn end_amount(&mut self, key: &[u8], sink: &mut PairSink) -> Result<()> {
        self.of_amount.drain_into(&mut self.of_currency, DifferenceKind::AmountDiffers, key, sink)
    }

    fn end_currency(&mut self, key: &[u8], sink: &mut PairSink) -> Result<()> {
        self.of_currency.drain_into(&mut self.of_key, DifferenceKind::CurrencyDiffers, key, sink)
    }
}
