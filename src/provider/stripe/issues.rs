//! What is doubtful about one record, gathered while its fields are read.
//!
//! A field that is not understood never becomes a default: it becomes an issue, and what hangs on
//! it is left out. Issues hold paths and machine words, never content.

use super::money;
use super::wire::{Raw, Read, Reference};
use crate::record::{NoteKind, SECOND_US};
use std::borrow::Cow;

/// A provider's time may run ahead of ours by this much before it is called wrong.
const AHEAD_US_MAX: i64 = 300 * SECOND_US;

/// First second of the year 10000: no later time is a time.
const SECONDS_MAX: i64 = 253_402_300_800;

/// One doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Issue {
    pub(super) kind: NoteKind,
    pub(super) cause: &'static str,
    pub(super) text: String,
}

/// The doubts about one record.
#[derive(Debug)]
pub(super) struct Issues {
    /// The wire name of the object: prefix of every path.
    object: &'static str,
    now_us: i64,
    pub(super) found: Vec<Issue>,
}

impl Issues {
    pub(super) const fn new(object: &'static str, now_us: i64) -> Self {
        Self { object, now_us, found: Vec::new() }
    }

    pub(super) fn add(&mut self, kind: NoteKind, cause: &'static str, text: String) {
        self.found.push(Issue { kind, cause, text });
    }

    fn wrong(&mut self, field: &str, wanted: &str) {
        let text = format!("`{}.{field}` is not {wanted}", self.object);
        self.add(NoteKind::UnknownShape, "wrong_type", text);
    }

    /// Something that must be there is not.
    pub(super) fn missing(&mut self, field: &str) {
        let text = format!("`{}.{field}` is missing", self.object);
        self.add(NoteKind::UnknownShape, "missing_field", text);
    }

    /// A word of an enumeration that is not known.
    pub(super) fn unknown_value(&mut self, field: &str, value: &str) {
        let text = format!("`{}.{field}` is `{}`, which is not known", self.object, word(value));
        self.add(NoteKind::UnknownShape, "unknown_value", text);
    }

    fn value<T>(&mut self, field: &str, wanted: &str, read: Read<T>) -> Option<T> {
        match read {
            Read::Value(value) => Some(value),
            Read::Missing | Read::Null => None,
            Read::Wrong => {
                self.wrong(field, wanted);
                None
            }
        }
    }

    fn required<T>(&mut self, field: &str, wanted: &str, read: Read<T>) -> Option<T> {
        if matches!(read, Read::Missing | Read::Null) {
            self.missing(field);
        }
        self.value(field, wanted, read)
    }

    pub(super) fn text<'a>(&mut self, field: &str, raw: Raw<'a>) -> Option<Cow<'a, str>> {
        self.value(field, "text", raw.text())
    }

    pub(super) fn required_text<'a>(&mut self, field: &str, raw: Raw<'a>) -> Option<Cow<'a, str>> {
        self.required(field, "text", raw.text())
    }

    pub(super) fn flag(&mut self, field: &str, raw: Raw<'_>) -> Option<bool> {
        self.value(field, "true or false", raw.flag())
    }

    pub(super) fn whole(&mut self, field: &str, raw: Raw<'_>) -> Option<i64> {
        self.value(field, "a whole number within 64 bits", raw.whole())
    }

    pub(super) fn id<'a>(&mut self, field: &str, raw: Raw<'a>) -> Option<Cow<'a, str>> {
        self.value(field, "an id", raw.id())
    }

    pub(super) fn reference<'a>(&mut self, field: &str, raw: Raw<'a>) -> Option<Reference<'a>> {
        self.value(field, "an id, an object with an id, or null", raw.reference())
    }

    pub(super) fn reference_id<'a>(&mut self, field: &str, raw: Raw<'a>) -> Option<Cow<'a, str>> {
        self.reference(field, raw).map(|reference| reference.id)
    }

    pub(super) fn object<'a>(&mut self, field: &str, raw: Raw<'a>) -> Option<&'a str> {
        self.value(field, "an object", raw.object())
    }

    pub(super) fn items<'a>(&mut self, field: &str, raw: Raw<'a>) -> Option<Vec<Raw<'a>>> {
        self.value(field, "a list", raw.items())
    }

    /// An amount of minor units that must be there and must not be negative.
    pub(super) fn amount(&mut self, field: &str, raw: Raw<'_>) -> Option<i64> {
        let amount = self.required(field, "a whole number within 64 bits", raw.whole())?;
        self.not_negative(field, amount)
    }

    /// An amount of minor units that older versions do not have.
    pub(super) fn optional_amount(&mut self, field: &str, raw: Raw<'_>) -> Option<i64> {
        let amount = self.whole(field, raw)?;
        self.not_negative(field, amount)
    }

    fn not_negative(&mut self, field: &str, amount: i64) -> Option<i64> {
        if amount < 0 {
            let text = format!("`{}.{field}` is {amount}, and a magnitude was expected", self.object);
            self.add(NoteKind::NeedsReview, "negative_amount", text);
            return None;
        }
        Some(amount)
    }

    /// A currency code, lower case.
    pub(super) fn currency(&mut self, field: &str, raw: Raw<'_>) -> Option<String> {
        let code = self.required(field, "a currency code", raw.text())?;
        if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Some(code.to_ascii_lowercase());
        }
        self.wrong(field, "a currency code");
        None
    }

    /// Notes an amount that Stripe does not send in this currency; the amount stands as it is.
    pub(super) fn check_granularity(&mut self, currency: &str, amount: i64, is_payout: bool) {
        let multiple = money::granularity(currency, is_payout);
        if amount % multiple != 0 {
            let text = format!(
                "{amount} {currency} is not a multiple of {multiple}, as every such amount is at the provider: \
                 either it is exact, or it was scaled on the way"
            );
            self.add(NoteKind::NeedsReview, "impossible_amount", text);
        }
    }

    /// A creation time in seconds, as Unix µs. One that lies in the future is noted and brought
    /// back to the latest believable instant, so that it cannot carry a watermark away.
    pub(super) fn created(&mut self, raw: Raw<'_>) -> Option<i64> {
        let at_us = self.required("created", "a time in seconds", raw.whole())?;
        let at_us = self.in_range("created", at_us)?;
        let latest_us = self.now_us.saturating_add(AHEAD_US_MAX);
        if at_us > latest_us {
            let text = format!("`{}.created` is {}, which is in the future", self.object, at_us / SECOND_US);
            self.add(NoteKind::NeedsReview, "future_timestamp", text);
            return Some(latest_us);
        }
        Some(at_us)
    }

    /// A time in seconds that may lie in the future, as Unix µs.
    pub(super) fn instant(&mut self, field: &str, raw: Raw<'_>) -> Option<i64> {
        let seconds = self.value(field, "a time in seconds", raw.whole())?;
        self.in_range(field, seconds)
    }

    fn in_range(&mut self, field: &str, seconds: i64) -> Option<i64> {
        if (0..SECONDS_MAX).contains(&seconds) {
            return Some(seconds * SECOND_US);
        }
        self.wrong(field, "a time between 1970 and 9999");
        None
    }
}

/// An enumeration's value as it may be printed: a plain word, and nothing else that stands there.
pub(super) fn word(value: &str) -> &str {
    let is_plain = (1..=60).contains(&value.len())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'));
    if is_plain { value } else { "(not a word)" }
}
