//! What the beginning of a file says about the rest of it: format, delimiter, and where the wanted columns stand. Pure.

use super::csv_rows::Fields;
use super::side::{Delimiter, FileSettings};
use crate::config::{Unusable, nearest};

/// Marks a position whose column is not wanted.
pub(super) const UNWANTED: usize = usize::MAX;

/// How the rows of a file are laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Csv(CsvLayout),
    JsonLines,
}

/// The header of a CSV file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CsvLayout {
    pub(super) delimiter: u8,
    /// Names as they stand, without blanks around them.
    pub(super) header: Vec<String>,
    /// For each position the number of the wanted column, or [`UNWANTED`].
    pub(super) wanted: Vec<usize>,
    /// Position and number of the columns that are wanted, by position.
    pub(super) places: Vec<(usize, usize)>,
}

/// What a file begins with, once unpacked, where that is no text of a table.
pub(super) fn refused(start: &[u8], name: &str) -> Option<Unusable> {
    let told = |what: &str, hint: &str| Some(Unusable::new(format!("{name} {what}"), hint));
    match start {
        [b'P', b'K', 3, 4, ..] => told("is a ZIP or an Excel file", "export it as CSV"),
        [b'P', b'A', b'R', b'1', ..] => told(
            "is a Parquet file, which is not read",
            "export it as CSV or JSON Lines, such as with duckdb -c \"copy (from 'x.parquet') to 'x.csv'\"",
        ),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            told("is packed with xz", "unpack it, or pack it with gzip or zstd")
        }
        [b'B', b'Z', b'h', ..] => told("is packed with bzip2", "unpack it, or pack it with gzip or zstd"),
        [b'[', ..] => told("is a JSON array", "write one object a line, such as with jq -c '.[]'"),
        _ => None,
    }
}

/// The layout of a CSV file, and where its rows begin: byte and line.
pub(super) fn of_csv(
    text: &str,
    settings: &FileSettings,
    is_cut: bool,
    name: &str,
) -> Result<(CsvLayout, usize, u64), Unusable> {
    let tried = settings.delimiter.as_ref().map_or(&Delimiter::TRIED[..], std::slice::from_ref);
    let mut best: Option<(usize, (CsvLayout, usize, u64))> = None;
    let mut fault = None;
    for delimiter in tried {
        let mut fields = Fields::new(text, 1, delimiter.byte(), is_cut);
        let mut header = Vec::new();
        match fields.row(|_, field| header.push(field.trim_matches([' ', '\t']).to_owned())) {
            Ok(Some(_)) => {}
            Ok(None) => return Err(empty(name)),
            Err(found) => {
                fault.get_or_insert(found);
                continue;
            }
        }
        let wanted = wanted(&header, &settings.columns);
        let places = wanted.iter().copied().enumerate().filter(|(_, number)| *number != UNWANTED).collect();
        let layout = CsvLayout { delimiter: delimiter.byte(), wanted, places, header };
        let known = layout.wanted.iter().filter(|number| **number != UNWANTED).count();
        if known == settings.columns.len() && known > 0 {
            return Ok((layout, fields.read(), fields.line()));
        }
        let rank = known * 10_000 + layout.header.len();
        if best.as_ref().is_none_or(|(best, _)| *best < rank) {
            best = Some((rank, (layout, fields.read(), fields.line())));
        }
    }
    match (best, fault) {
        // Nothing is wanted: the header itself is asked for.
        (Some((_, found)), _) if settings.columns.is_empty() => Ok(found),
        (Some((_, (layout, ..))), _) => Err(missing(&layout, settings, name)),
        (None, Some(fault)) => Err(Unusable::new(format!("{name}:{}: {}", fault.line, fault.message), "")),
        (None, None) => Err(empty(name)),
    }
}

/// For each position the wanted column's number; a name that stands twice in the header is nowhere.
fn wanted(header: &[String], columns: &[String]) -> Vec<usize> {
    let is_once = |name: &String| header.iter().filter(|other| *other == name).count() == 1;
    let number = |name: &String| columns.iter().position(|column| column == name).filter(|_| is_once(name));
    header.iter().map(|name| number(name).unwrap_or(UNWANTED)).collect()
}

fn missing(layout: &CsvLayout, settings: &FileSettings, name: &str) -> Unusable {
    let is_there = |column: &String| layout.header.contains(column);
    if let Some(twice) = settings.columns.iter().find(|column| is_there(column) && !is_once(layout, column)) {
        let message = format!("{name}:1: the header has the column `{twice}` more than once");
        return Unusable::new(message, "nobody can know which one is meant: rename one of them");
    }
    let absent: Vec<&str> =
        settings.columns.iter().filter(|column| !is_there(column)).map(String::as_str).collect();
    let first = absent.first().copied().unwrap_or_default();
    let message = format!(
        "{name}:1: the header, with {} columns, has no column `{}`",
        layout.header.len(),
        absent.join("`, `")
    );
    // A file without a header has values there, so nothing but a near name is quoted.
    let hint = match nearest(first, layout.header.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`? Names are compared letter by letter"),
        None => format!(
            "look at the first line (head -n 1); a name that differs on one side is mapped, such as --left amount={first}"
        ),
    };
    Unusable::new(message, hint)
}

fn is_once(layout: &CsvLayout, column: &String) -> bool {
    layout.header.iter().filter(|name| *name == column).count() == 1
}

/// A file that holds nothing.
pub(super) fn empty(name: &str) -> Unusable {
    Unusable::new(
        format!("{name} is empty: there is not even a header"),
        "an export without rows has its header",
    )
}
