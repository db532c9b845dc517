//! CSV cells in two styles: machine files (the default) and files for spreadsheets.
//!
//! **Machine**: `,`, LF, no byte order mark, every value as it is. **Spreadsheet**: the same columns
//! in the same order, and then, for each `*_minor` column, a `*_decimal` column at the end with the
//! same amount as decimal text. There, ids and text that a spreadsheet would run as a formula begin
//! with an apostrophe.
//!
//! Why an apostrophe and not `="…"`: `="…"` is itself a formula, is cut off at 255 characters by
//! Excel's string literals, and shows as it is where formulas in CSV are off. An apostrophe makes
//! text of the cell in every program; some show it, some hide it. It is exact in both directions:
//! a cell of text that begins with an apostrophe of its own gets one more, so removing one leading
//! apostrophe always gives the raw value ([`unmark`]).
//!
//! The one thing to get right: numbers are never guarded. `-12` is an amount, not a formula.

use crate::config::{Locale, ReportSettings};
use crate::record::decimal_from_minor;
use std::borrow::Cow;

/// Bytes EF BB BF: tells a spreadsheet that the file is UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How a file is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For programs.
    Machine,
    /// For people who open it in a spreadsheet set to that locale.
    Spreadsheet(Locale),
}

impl Style {
    /// The style that the settings ask for.
    #[must_use]
    pub const fn of(settings: &ReportSettings) -> Self {
        if settings.spreadsheet { Self::Spreadsheet(settings.locale) } else { Self::Machine }
    }

    /// The words in the manifest.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Spreadsheet(Locale::En) => "spreadsheet en",
            Self::Spreadsheet(Locale::PtBr) => "spreadsheet pt-BR",
        }
    }

    /// Whether the file is for a spreadsheet.
    #[must_use]
    pub const fn is_spreadsheet(self) -> bool {
        matches!(self, Self::Spreadsheet(_))
    }

    pub(super) const fn is_pt_br(self) -> bool {
        matches!(self, Self::Spreadsheet(Locale::PtBr))
    }

    /// Minor units as decimal text in this style.
    #[must_use]
    pub fn decimal(self, minor: i64, exponent: u32) -> String {
        let text = decimal_from_minor(minor, exponent);
        if self.is_pt_br() { text.replace('.', ",") } else { text }
    }
}

/// What a column holds. The name of the variant is the type that `reports/*.md` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// An id, or ids joined by `|`: never to be read as a number or a date.
    Id,
    /// Words and sentences.
    Text,
    /// A whole number ≥ 0.
    Count,
    /// Signed minor units of the row's currency.
    Minor,
    /// RFC 3339 with the finance zone's offset.
    Time,
}

impl Holds {
    /// The word in `reports/*.md`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Text => "text",
            Self::Count => "count",
            Self::Minor => "minor units",
            Self::Time => "time",
        }
    }
}

/// One column of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its header.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
}

impl Column {
    /// A column.
    #[must_use]
    pub const fn new(name: &'static str, holds: Holds) -> Self {
        Self { name, holds }
    }
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// For [`Holds::Id`].
    Id(&'a str),
    /// For [`Holds::Text`].
    Text(&'a str),
    /// For [`Holds::Count`].
    Count(u64),
    /// For [`Holds::Minor`]: the amount, and the decimals of its currency at that provider.
    Minor(i64, u32),
    /// For [`Holds::Time`].
    Time(&'a str),
    /// No value; fits every column.
    Empty,
}

impl Cell<'_> {
    pub(super) fn fits(self, column: Column) -> bool {
        match self {
            Cell::Id(_) => column.holds == Holds::Id,
            Cell::Text(_) => column.holds == Holds::Text,
            Cell::Count(_) => column.holds == Holds::Count,
            Cell::Minor(..) => column.holds == Holds::Minor,
            Cell::Time(_) => column.holds == Holds::Time,
            Cell::Empty => true,
        }
    }
}

/// The raw value of an id or text cell of a spreadsheet file.
#[must_use]
pub fn unmark(cell: &str) -> &str {
    cell.strip_prefix('\'').unwrap_or(cell)
}

/// Headers of the decimal twins of a style: `amount_minor` → `amount_decimal`.
pub(super) fn decimal_headers(style: Style, columns: &[Column]) -> Vec<String> {
    let minor = columns.iter().filter(|column| style.is_spreadsheet() && is_minor(**column));
    minor.map(|column| format!("{}_decimal", column.name.trim_end_matches("_minor"))).collect()
}

pub(super) fn is_minor(column: Column) -> bool {
    column.holds == Holds::Minor
}

pub(super) fn spell(cell: Cell<'_>, style: Style) -> Cow<'_, str> {
    match cell {
        Cell::Id(text) if style.is_spreadsheet() => mark(text),
        Cell::Text(text) if style.is_spreadsheet() => guard(text),
        Cell::Id(text) | Cell::Text(text) | Cell::Time(text) => Cow::Borrowed(text),
        Cell::Count(count) => Cow::Owned(count.to_string()),
        Cell::Minor(minor, _) => Cow::Owned(minor.to_string()),
        Cell::Empty => Cow::Borrowed(""),
    }
}

fn mark(id: &str) -> Cow<'_, str> {
    if id.is_empty() { Cow::Borrowed(id) } else { Cow::Owned(format!("'{id}")) }
}

/// Neutralises what a spreadsheet would run. Spreadsheets skip blanks and control characters before
/// a formula, and some take the full-width forms of its first character (OWASP, "CSV Injection").
fn guard(text: &str) -> Cow<'_, str> {
    let is_skipped = |c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}';
    let first = text.trim_start_matches(is_skipped).chars().next();
    let is_formula = matches!(first, Some('=' | '+' | '-' | '@' | '|' | '%' | '＝' | '＋' | '－' | '＠'));
    if is_formula || text.starts_with('\'') { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}
