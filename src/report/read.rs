//! Reads back a CSV file of ours, in either style, strictly: what a person may have done to it in a
//! spreadsheet (other separator, byte order mark, other line ends, rows deleted or emptied) is
//! accepted, and anything that could change a value is an error that names row and column.
//!
//! Rows are numbered as a spreadsheet numbers them: the header is row 1.

use super::cell::{BYTE_ORDER_MARK, Column, Holds, Style, decimal_headers, unmark};
use crate::config::Locale;
use anyhow::{Context, Result, bail};

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    columns: &'static [Column],
    /// Its rows in file order.
    pub rows: Vec<TableRow>,
}

/// One row: raw values, apostrophes of the spreadsheet style removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// As a spreadsheet numbers it; the header is 1.
    pub number: usize,
    /// One for each column.
    pub cells: Vec<String>,
    /// The `*_decimal` cells, with a dot; empty in a machine file.
    pub decimals: Vec<String>,
}

impl Table {
    /// The cell of a column.
    ///
    /// # Panics
    /// When the file has no such column: the program is wrong.
    #[must_use]
    pub fn cell<'a>(&self, row: &'a TableRow, column: &str) -> &'a str {
        let position = self.columns.iter().position(|known| known.name == column);
        assert!(position.is_some(), "there is no column {column}");
        position.and_then(|at| row.cells.get(at)).map_or("", String::as_str)
    }

    /// Where a cell stands, for an error.
    #[must_use]
    pub fn place(&self, row: &TableRow, column: &str) -> String {
        format!("row {}, column {column}", row.number)
    }

    /// A cell as signed minor units, in exactly the spelling that we write.
    ///
    /// # Errors
    /// When it is not that; names row and column.
    pub fn minor(&self, row: &TableRow, column: &str) -> Result<i64> {
        let text = self.cell(row, column);
        match text.parse::<i64>() {
            Ok(minor) if minor.to_string() == text => Ok(minor),
            _ => bail!("{}: {} is not a whole number of minor units", self.place(row, column), quote(text)),
        }
    }
}

/// Reads `bytes` as a file with `columns`. The caller knows what the file is called and says so.
///
/// # Errors
/// When the text is not UTF-8, the header is not ours, or a row has too few or too many cells.
pub fn read(columns: &'static [Column], bytes: &[u8]) -> Result<Table> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let header_end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(bytes.len());
    let delimiter = if bytes[..header_end].contains(&b';') { b';' } else { b',' };
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(bytes);
    let mut records = Vec::new();
    for (index, record) in reader.records().enumerate() {
        records.push(record.with_context(|| format!("row {} is not UTF-8 CSV text", index + 1))?);
    }
    let mut records = records.into_iter();
    let Some(header) = records.next() else { bail!("it is empty, without even a header") };
    let is_spreadsheet = check_header(columns, &header)?;
    let width = header.len();
    let mut table = Table { columns, rows: Vec::new() };
    for (index, record) in records.enumerate() {
        let number = index + 2;
        if record.iter().all(str::is_empty) {
            continue;
        }
        if record.len() != width {
            bail!("row {number} has {} cells, the header has {width}", record.len());
        }
        table.rows.push(raw_row(number, &record, columns, is_spreadsheet));
    }
    Ok(table)
}

/// Whether the header is the spreadsheet style's.
fn check_header(columns: &[Column], header: &csv::StringRecord) -> Result<bool> {
    let twins = decimal_headers(Style::Spreadsheet(Locale::En), columns);
    for (index, column) in columns.iter().enumerate() {
        let met = header.get(index).unwrap_or("");
        if met != column.name {
            bail!("row 1, column {}: {} instead of `{}`", index + 1, quote(met), column.name);
        }
    }
    let rest: Vec<&str> = header.iter().skip(columns.len()).collect();
    if !rest.is_empty() && rest != twins {
        bail!("row 1: unknown columns after `{}`", columns.last().map_or("", |column| column.name));
    }
    Ok(!rest.is_empty())
}

fn raw_row(number: usize, record: &csv::StringRecord, columns: &[Column], is_spreadsheet: bool) -> TableRow {
    let raw = |(cell, column): (&str, &Column)| match column.holds {
        Holds::Id | Holds::Text if is_spreadsheet => unmark(cell).to_owned(),
        _ => cell.to_owned(),
    };
    TableRow {
        number,
        cells: record.iter().zip(columns).map(raw).collect(),
        decimals: record.iter().skip(columns.len()).map(|cell| cell.replace(',', ".")).collect(),
    }
}

/// A cell's text for an error: short, and on one line.
pub(super) fn quote(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    format!("{short:?}")
}
