//! The columns of a team's statement, found by name, and the reading of one row of them. Every error
//! names the file, the row's own id and the column.

use super::rows::{Cell, TeamRow};
use crate::config::{Unusable, nearest};
use crate::record::{Scope, minor_from_decimal};
use std::borrow::Cow;

/// Instants before 1973 are seconds or milliseconds that were taken for microseconds.
const INSTANT_US_MIN: i64 = 100_000_000_000_000;

/// Largest magnitude of a row's amount, minor units: a thousand times the twelve digits that Stripe allows a
/// charge (<https://docs.stripe.com/currencies#minimum-and-maximum-charge-amounts>), and so small that it takes
/// 9,223 such rows of one payment to leave 64 bits.
const AMOUNT_MINOR_MAX: u64 = 1_000_000_000_000_000;

/// What a statement must give.
pub(super) struct Contract {
    /// Columns that must be there.
    pub required: &'static [&'static str],
    /// Columns of which at least one must be there; empty for none.
    pub one_of: &'static [&'static str],
    /// Columns that are read where they are there.
    pub optional: &'static [&'static str],
    /// The column that names a row in errors.
    pub row_id: &'static str,
}

/// Where each column of the contract stands in a statement's rows.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    file: String,
    row_id: &'static str,
    /// A few names, each compared by its length first.
    index: Vec<(&'static str, usize)>,
}

impl Columns {
    /// Finds the columns by name, in any order and any case.
    pub fn find(file: &str, contract: &Contract, names: &[String]) -> Result<Self, Unusable> {
        let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        let mut index = Vec::new();
        let wanted = contract.required.iter().chain(contract.one_of).chain(contract.optional);
        for name in wanted {
            let mut places = names.iter().enumerate().filter(|(_, found)| found == name);
            if let Some((place, _)) = places.next() {
                index.push((*name, place));
            }
            if places.next().is_some() {
                return Err(Unusable::new(format!("{file}: gives the column {name} twice"), "give it once"));
            }
        }
        let is_there = |name: &str| index.iter().any(|(known, _)| *known == name);
        let missing: Vec<&str> = contract.required.iter().copied().filter(|name| !is_there(name)).collect();
        if let Some(first) = missing.first() {
            let near = nearest(first, names.iter().map(String::as_str))
                .map(|near| format!("it gives `{near}`; "))
                .unwrap_or_default();
            return Err(Unusable::new(
                format!("{file}: the column {} is missing", missing.join(", ")),
                format!("{near}write `… as {first}` in its select"),
            ));
        }
        let has_one = contract.one_of.iter().any(|name| is_there(name));
        if !contract.one_of.is_empty() && !has_one {
            let names = contract.one_of.join(" or ");
            let hint = format!("write `… as {}` in its select", contract.one_of[0]);
            return Err(Unusable::new(format!("{file}: the column {names} is missing"), hint));
        }
        Ok(Self { file: file.to_owned(), row_id: contract.row_id, index })
    }

    /// Where a column stands; `None` where the statement does not give it.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.index.iter().find(|(known, _)| *known == name).map(|(_, place)| *place)
    }

    pub fn row<'a>(&'a self, row: &'a TeamRow, number: u64) -> RowReader<'a> {
        RowReader { columns: self, row, number }
    }
}

/// The scope of the row before: nearly always that of the next one, too, and then none of its texts is copied.
#[derive(Debug, Default)]
pub(super) struct Scopes(Option<Scope>);

impl Scopes {
    fn of(&mut self, provider: &str, account: &str, mode: &str) -> Scope {
        match &self.0 {
            Some(last) if *last.provider == *provider && *last.account == *account && *last.mode == *mode => {
                last.clone()
            }
            _ => self.0.insert(Scope::new(provider, account, mode)).clone(),
        }
    }
}

/// Reads one row.
pub(super) struct RowReader<'a> {
    columns: &'a Columns,
    row: &'a TeamRow,
    /// Counted from 1 in the order of the statement.
    number: u64,
}

impl RowReader<'_> {
    fn cell(&self, name: &str) -> Result<Option<Cell<'_>>, Unusable> {
        let Some(place) = self.columns.place(name) else { return Ok(None) };
        self.row.cell(place).map(Some).map_err(|why| self.bad(name, why, ""))
    }

    /// An error about one column of this row.
    pub fn bad(&self, column: &str, why: &str, hint: impl Into<String>) -> Unusable {
        let id = match self.row_id() {
            Some(id) => format!("{}={id}", self.columns.row_id),
            None => format!("number {}", self.number),
        };
        let hint: String = hint.into();
        let hint =
            if hint.is_empty() { "correct the row, or the statement that gives it".to_owned() } else { hint };
        Unusable::new(format!("{}: row {id}: column {column} {why}", self.columns.file), hint)
    }

    fn row_id(&self) -> Option<String> {
        let place = self.columns.place(self.columns.row_id)?;
        let text = match self.row.cell(place).ok()? {
            Cell::Text(text) => text.into_owned(),
            Cell::Integer(number) => number.to_string(),
            _ => return None,
        };
        (!text.is_empty()).then(|| text.chars().filter(|letter| !letter.is_control()).take(80).collect())
    }

    /// A text that a row cannot do without; a whole number is read as its digits.
    pub fn key(&self, name: &str) -> Result<String, Unusable> {
        self.word(name).map(Cow::into_owned)
    }

    /// As [`Self::key`], where it stands.
    pub fn word(&self, name: &str) -> Result<Cow<'_, str>, Unusable> {
        let text = self.borrowed(name)?;
        if text.is_empty() {
            Err(self.bad(name, "is empty or null, and a key cannot be", ""))
        } else {
            Ok(text)
        }
    }

    /// A text, empty where it is null or not there.
    pub fn text(&self, name: &str) -> Result<String, Unusable> {
        self.borrowed(name).map(Cow::into_owned)
    }

    fn borrowed(&self, name: &str) -> Result<Cow<'_, str>, Unusable> {
        match self.cell(name)? {
            None | Some(Cell::Null) => Ok(Cow::Borrowed("")),
            Some(Cell::Text(text)) => Ok(text),
            Some(Cell::Integer(number)) => Ok(Cow::Owned(number.to_string())),
            Some(Cell::Real | Cell::Time | Cell::Blob) => {
                Err(self.bad(name, "must be a text", "cast it to text in the select"))
            }
        }
    }

    /// Whether the row is one of those that were asked for, byte for byte: a database may take ids for the same that
    /// differ in the case of a letter or in blanks at the end.
    pub fn is_wanted(&self, only: Option<(&str, &[&str])>) -> Result<bool, Unusable> {
        let Some((column, ids)) = only else { return Ok(true) };
        Ok(ids.binary_search(&&*self.borrowed(column)?).is_ok())
    }

    /// (provider, account, mode); the account may be empty, and nothing may be null.
    pub fn scope(&self, scopes: &mut Scopes) -> Result<Scope, Unusable> {
        if matches!(self.cell("account")?, Some(Cell::Null)) {
            return Err(self.bad(
                "account",
                "is null",
                "the platform account is '': write coalesce(account, '')",
            ));
        }
        let mode = self.word("mode")?;
        if !matches!(&*mode, "live" | "test") {
            return Err(self.bad("mode", "must be live or test", ""));
        }
        Ok(scopes.of(&self.word("provider")?, &self.borrowed("account")?, &mode))
    }

    /// A whole number, `None` where it is null or not there.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Unusable> {
        match self.cell(name)? {
            None | Some(Cell::Null) => Ok(None),
            Some(Cell::Integer(number)) => Ok(Some(number)),
            Some(Cell::Text(text)) => match text.trim().parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.bad(name, "must be a whole number", "")),
            },
            Some(Cell::Time) => {
                Err(self.bad(name, "must be a whole number, and is a date", self.row.instant_hint()))
            }
            Some(Cell::Real | Cell::Blob) => Err(self.bad(
                name,
                "must be a whole number, and is not",
                "store whole minor units, or give decimal text as `amount`",
            )),
        }
    }

    /// An instant in Unix microseconds.
    pub fn instant(&self, name: &str) -> Result<i64, Unusable> {
        let at_us = self.integer(name)?.ok_or_else(|| self.bad(name, "is null", "give Unix microseconds"))?;
        if at_us < INSTANT_US_MIN {
            return Err(self.bad(
                name,
                "lies before 1973, so it is no count of microseconds",
                "multiply seconds by 1000000, milliseconds by 1000",
            ));
        }
        Ok(at_us)
    }

    /// `amount_minor`, or `amount` read digit by digit with `exponent` decimals. Never rounded.
    pub fn amount(&self, exponent: u32) -> Result<i64, Unusable> {
        if let Some(minor) = self.integer("amount_minor")? {
            return self.within_bound("amount_minor", minor);
        }
        let text = match self.cell("amount")? {
            Some(Cell::Text(text)) => text.into_owned(),
            // A whole number is exact: a numeric column turns '20.00' into 20.
            Some(Cell::Integer(units)) => units.to_string(),
            Some(Cell::Real) => {
                return Err(self.bad(
                    "amount",
                    "is a floating-point number, which does not hold decimal money exactly",
                    "keep it as text or as whole minor units; SQLite turns '19.99' in a numeric or decimal column into one",
                ));
            }
            Some(Cell::Time | Cell::Blob) => return Err(self.bad("amount", "must be decimal text", "")),
            None | Some(Cell::Null) => {
                let name = if self.columns.place("amount").is_some() { "amount" } else { "amount_minor" };
                return Err(self.bad(name, "is null", ""));
            }
        };
        let minor = minor_from_decimal(&text, exponent).map_err(|error| {
            self.bad("amount", &format!("cannot be taken: {error}"), "correct the row; nothing is rounded")
        })?;
        self.within_bound("amount", minor)
    }

    /// An amount that no sum of a payment can wrap.
    pub fn within_bound(&self, name: &str, minor: i64) -> Result<i64, Unusable> {
        if minor.unsigned_abs() <= AMOUNT_MINOR_MAX {
            return Ok(minor);
        }
        Err(self.bad(
            name,
            &format!("is {minor} minor units, and more than {AMOUNT_MINOR_MAX} is no payment's amount"),
            "correct the row; a wrong scale and an id in the wrong column look like this",
        ))
    }

    /// A lower-case currency code.
    pub fn currency(&self) -> Result<String, Unusable> {
        let text = self.borrowed("currency")?;
        let code = text.trim();
        if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            Ok(code.to_ascii_lowercase())
        } else {
            Err(self.bad("currency", "must be a code of three letters, such as usd", ""))
        }
    }
}
