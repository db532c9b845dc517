//! `recon compare --out`: one row for each difference between two files. The columns and their order are a contract.
//!
//! The one thing to get right: per currency, the sum of `left_minor` where `left_currency` is that currency, less the
//! sum of `right_minor` where `right_currency` is, is the difference of both sides' totals.

use super::cell::{Cell, Column, Holds, Style};
use super::sheet::Sheet;
use crate::compare::{Difference, DifferenceKind, Place, Seen};
use anyhow::Result;
use std::borrow::Cow;
use std::io::Write;

/// Columns of the file of differences.
pub const COLUMNS: [Column; 15] = [
    Column::new("kind", Holds::Text),
    Column::new("cause", Holds::Text),
    Column::new("key", Holds::Id),
    Column::new("left_currency", Holds::Text),
    Column::new("left_minor", Holds::Minor),
    Column::new("right_currency", Holds::Text),
    Column::new("right_minor", Holds::Minor),
    Column::new("difference_minor", Holds::Minor),
    Column::new("left_status", Holds::Text),
    Column::new("right_status", Holds::Text),
    Column::new("left_file", Holds::Text),
    Column::new("left_line", Holds::Count),
    Column::new("right_file", Holds::Text),
    Column::new("right_line", Holds::Count),
    Column::new("repeats", Holds::Text),
];

/// What the numbers in a difference stand for.
pub trait Names {
    /// Lower-case code and decimals of a currency.
    fn currency(&self, number: u16) -> (&str, u32);
    /// A file as it was named.
    fn file(&self, number: u32) -> Cow<'_, str>;
}

/// Starts the file.
///
/// # Errors
/// When it cannot be written.
pub fn start<W: Write>(out: W, style: Style) -> Result<Sheet<W>> {
    Sheet::over(out, style, &COLUMNS)
}

/// Adds a difference.
///
/// # Errors
/// When it cannot be written.
pub fn push<W: Write>(sheet: &mut Sheet<W>, difference: &Difference, names: &impl Names) -> Result<()> {
    let (left, right) = (difference.left.as_ref(), difference.right.as_ref());
    let currency = |seen: Option<&Seen>| seen.map_or("", |seen| names.currency(seen.currency).0);
    let minor = |seen: Option<&Seen>| {
        seen.map_or(Cell::Empty, |seen| Cell::Minor(seen.amount_minor, names.currency(seen.currency).1))
    };
    let status = |seen: Option<&Seen>| seen.map_or(String::new(), |seen| seen.status.clone());
    let file = |seen: Option<&Seen>| seen.map_or(Cow::Borrowed(""), |seen| names.file(seen.place.source));
    let line = |seen: Option<&Seen>| seen.map_or(Cell::Empty, |seen| Cell::Count(seen.place.line));
    let net = match (net(difference), left.or(right)) {
        (Some(minor), Some(seen)) => Cell::Minor(minor, names.currency(seen.currency).1),
        _ => Cell::Empty,
    };
    sheet.push(&[
        Cell::Text(difference.kind.as_str()),
        Cell::Text(&cause(difference)),
        Cell::Id(&key(&difference.key)),
        Cell::Text(currency(left)),
        minor(left),
        Cell::Text(currency(right)),
        minor(right),
        net,
        Cell::Text(&status(left)),
        Cell::Text(&status(right)),
        Cell::Text(&file(left)),
        line(left),
        Cell::Text(&file(right)),
        line(right),
        Cell::Text(&difference.repeats.map_or(String::new(), |place| at(place, names))),
    ])
}

/// `file:line`.
#[must_use]
pub fn at(place: Place, names: &impl Names) -> String {
    format!("{}:{}", names.file(place.source), place.line)
}

/// The key for people: parts joined by `|`. A `|` or a backslash inside of a part is then marked with a backslash; a
/// key of one column is always as it is.
#[must_use]
pub fn key(key: &str) -> Cow<'_, str> {
    if !key.contains('\0') {
        return Cow::Borrowed(key);
    }
    Cow::Owned(key.replace('\\', "\\\\").replace('|', "\\|").replace('\0', "|"))
}

/// Left minus right in the one currency that it is about; `None` where there are two, or it leaves 64 bits.
fn net(difference: &Difference) -> Option<i64> {
    match (&difference.left, &difference.right) {
        (Some(left), Some(right)) if left.currency == right.currency => {
            left.amount_minor.checked_sub(right.amount_minor)
        }
        (Some(left), None) => Some(left.amount_minor),
        (None, Some(right)) => right.amount_minor.checked_neg(),
        _ => None,
    }
}

/// What makes the difference likely, where its numbers say so.
#[must_use]
pub fn cause(difference: &Difference) -> String {
    let one_side = if difference.is_key_on_both { "fewer_rows_of_key" } else { "no_such_key" };
    match (difference.kind, &difference.left, &difference.right) {
        (DifferenceKind::MissingOnLeft | DifferenceKind::MissingOnRight, ..) => one_side.to_owned(),
        (DifferenceKind::AmountDiffers, Some(left), Some(right)) => {
            let (left, right) = (i128::from(left.amount_minor), i128::from(right.amount_minor));
            let factor = [10, 100, 1000]
                .into_iter()
                .find(|by| left != 0 && right != 0 && (left == right * by || right == left * by));
            match factor {
                _ if left == -right => "sign".to_owned(),
                Some(factor) => format!("factor={factor}"),
                None if (left - right).abs() <= 1 => "rounding".to_owned(),
                None => String::new(),
            }
        }
        (DifferenceKind::CurrencyDiffers, Some(left), Some(right))
            if left.amount_minor == right.amount_minor =>
        {
            "same_number".to_owned()
        }
        _ => String::new(),
    }
}
