//! The team's statements that carry corrections out: which file does what, what may be bound in it, and how many rows it
//! is to touch. Pure.
//!
//! The one thing to get right: one row, unless the file itself says otherwise. A statement that touched none or two did
//! not do what was reviewed.

use super::reader::Bind;
use super::statement::{Statement, Syntax};
use crate::config::Unusable;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// What a statement of `queries/target/` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// Books an effect.
    ApplyEffect,
    /// Takes a row of the books back.
    ReverseEntry,
    /// Sets a payment's status.
    SetState,
    /// Files an event that never came.
    FileEvent,
    /// Marks an event that came, and whose effect is booked now.
    MarkEvent,
}

impl Doing {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::ApplyEffect, Self::ReverseEntry, Self::SetState, Self::FileEvent, Self::MarkEvent];

    /// Its file.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::ApplyEffect => "apply_effect.sql",
            Self::ReverseEntry => "reverse_entry.sql",
            Self::SetState => "set_state.sql",
            Self::FileEvent => "file_event.sql",
            Self::MarkEvent => "mark_event.sql",
        }
    }
}

/// What may stand in a statement as `:name`. Instants are Unix µs, amounts are magnitudes in minor units.
pub(super) const BINDS: [&str; 25] = [
    "effect_key",
    "correction_id",
    "run_id",
    "reason",
    "provider",
    "account",
    "mode",
    "object_id",
    "root_id",
    "kind",
    "currency",
    "amount_minor",
    "amount",
    "occurred_at_us",
    "applied_at_us",
    "effect_id",
    "kept_effect_id",
    "event_id",
    "event_type",
    "body",
    "body_bytes",
    "status",
    "state",
    "found_status",
    "refunded_minor",
];

/// What is bound, by name. It has no `Debug`: a body may hold personal data.
#[derive(Clone, Default)]
pub struct TargetValues(BTreeMap<&'static str, Bind>);

impl TargetValues {
    /// Adds a text.
    pub fn text(&mut self, name: &'static str, text: &str) {
        self.0.insert(name, Bind::Text(text.to_owned()));
    }

    /// Adds a whole number, or none.
    pub fn integer(&mut self, name: &'static str, number: Option<i64>) {
        self.0.insert(name, number.map_or(Bind::NoInteger, Bind::Integer));
    }

    /// Adds bytes.
    pub fn bytes(&mut self, name: &'static str, bytes: &[u8]) {
        self.0.insert(name, Bind::Bytes(bytes.to_vec()));
    }

    /// The values of a statement's binds; the first that has none is the error.
    pub(super) fn of(&self, binds: &[&'static str]) -> Result<Vec<Bind>, &'static str> {
        binds.iter().map(|name| self.0.get(name).cloned().ok_or(*name)).collect()
    }
}

/// One of the team's statements, ready to run.
#[derive(Clone, Debug)]
pub(super) struct TargetStatement {
    pub statement: Statement,
    /// Rows that it may touch.
    pub rows: RangeInclusive<u64>,
    /// Statuses of rows that are there, of which it makes the booked effect.
    pub takes_over: BTreeSet<String>,
}

impl TargetStatement {
    /// Reads one.
    pub fn parse(file: &str, text: &str, syntax: Syntax) -> Result<Self, Unusable> {
        let rows = rows_said(file, text)?;
        let statement = Statement::parse(file, text, syntax, &BINDS)?;
        Ok(Self { statement, rows, takes_over: takes_over(text) })
    }

    /// Whether a body is bound, which no error may repeat.
    pub fn is_quiet(&self) -> bool {
        self.statement.binds.iter().any(|bind| bind.starts_with("body"))
    }

    /// What it may touch, in words.
    pub fn rows_text(&self) -> String {
        let (least, most) = (self.rows.start(), self.rows.end());
        match (least == most, *most) {
            (true, 1) => "1 row".to_owned(),
            (true, most) => format!("{most} rows"),
            _ => format!("{least} to {most} rows"),
        }
    }
}

/// The words of `-- takes over: pending, processing`, on lines of their own: the team's statuses of rows that are there and
/// not booked, of which the statement makes the booked effect (an `update`, or an insert with `on conflict … do update`).
#[must_use]
pub fn takes_over(text: &str) -> BTreeSet<String> {
    let said =
        text.lines().filter_map(|line| line.trim().strip_prefix("--")?.trim().strip_prefix("takes over:"));
    said.flat_map(|words| words.split(','))
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

/// `-- rows: 2` or `-- rows: 0..1` on a line of its own; without it, one.
fn rows_said(file: &str, text: &str) -> Result<RangeInclusive<u64>, Unusable> {
    let mut said =
        text.lines().filter_map(|line| line.trim().strip_prefix("--")?.trim().strip_prefix("rows:"));
    let Some(first) = said.next() else { return Ok(1..=1) };
    let bad = || {
        Unusable::new(
            format!("{file}: how many rows it touches cannot be read"),
            "write one line `-- rows: 2` or `-- rows: 0..1`; without it a statement must touch one row",
        )
    };
    let (least, most) = first.split_once("..").unwrap_or((first, first));
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| bad());
    let (least, most) = (number(least)?, number(most)?);
    if said.next().is_some() || least > most || most == 0 { Err(bad()) } else { Ok(least..=most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<RangeInclusive<u64>, String> {
        TargetStatement::parse("a.sql", text, Syntax::Numbered)
            .map(|parsed| parsed.rows)
            .map_err(|error| error.message)
    }

    #[test]
    fn a_statement_touches_one_row_unless_it_says_otherwise() {
        assert_eq!(rows("update t set a = :status"), Ok(1..=1));
        assert_eq!(rows("-- sets it\n-- rows: 2\nupdate t set a = :status"), Ok(2..=2));
        assert_eq!(rows("--rows: 0..1\nupdate t set a = :status"), Ok(0..=1));
        for text in ["-- rows: many", "-- rows: 2..1", "-- rows: 0", "-- rows: 1\n-- rows: 2", "-- rows:"] {
            let why = rows(&format!("{text}\nupdate t set a = 1")).unwrap_err();
            assert!(why.contains("how many rows"), "{text}: {why}");
        }
    }

    #[test]
    fn statuses_that_are_taken_over_are_named() {
        let text = "-- takes over: pending, on hold\n-- takes over:x,\nupdate t set a = 1 -- takes over: no";
        assert_eq!(takes_over(text), ["on hold", "pending", "x"].map(str::to_owned).into());
        assert!(takes_over("update t set a = 1").is_empty());
    }

    #[test]
    fn what_may_be_bound_is_known_and_a_body_is_never_repeated() {
        let parse = |text| TargetStatement::parse("a.sql", text, Syntax::MySql);
        assert!(parse("insert into t values (:amont_minor)").unwrap_err().hint.contains("amount_minor"));
        assert!(parse("insert into t values (:body)").unwrap().is_quiet());
        assert!(parse("insert into t values (:body_bytes)").unwrap().is_quiet());
        assert!(!parse("insert into t values (:event_id)").unwrap().is_quiet());
    }
}
