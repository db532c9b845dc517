//! Reads all rows of a source on several threads. The error that is told is the first one in the order of the files,
//! whichever thread meets another one earlier: blocks are handed out in order, so the first bad one always is.

use super::csv_rows::Fields;
use super::json_rows;
use super::layout::{CsvLayout, Layout, UNWANTED};
use super::marks::{self, PlainRows};
use super::source::{Block, Row, Source, not_text};
use crate::config::Unusable;
use anyhow::{Result, anyhow};
use memchr::{memchr, memchr_iter};
use std::borrow::Cow;

/// Why a row is refused by whoever takes it.
#[derive(Debug)]
pub enum RowFault {
    /// A cell that cannot be used.
    Cell {
        /// The wanted column, by its number in the settings.
        column: usize,
        /// What is wrong with it, to follow the column's name.
        message: String,
        /// What to do; may be empty.
        hint: String,
    },
    /// Something else than the row.
    Other(anyhow::Error),
}

impl From<anyhow::Error> for RowFault {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

/// Hands every row to one of the workers, each on a thread of its own, and hands the workers back.
///
/// # Errors
/// When a file cannot be read, or a row cannot be read or is refused: names file, line and column.
pub fn read_in_parallel<W: Send>(
    source: &Source,
    workers: Vec<W>,
    take: impl Fn(&mut W, Row<'_, '_>) -> Result<(), RowFault> + Sync,
) -> Result<Vec<W>> {
    let run = |mut worker: W| -> Result<W, (u64, anyhow::Error)> {
        let (mut buffer, mut ends) = (Vec::new(), Vec::new());
        while let Some(block) = source.next_block(&mut buffer)? {
            if let Err(error) = read_block(source, &block, &buffer, &mut ends, |row| take(&mut worker, row)) {
                source.stop();
                return Err((block.sequence, error));
            }
        }
        Ok(worker)
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(|| run(worker))).collect();
        let lost = || Err((u64::MAX, anyhow!("a reader of the files broke down")));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
    });
    let mut ended = Vec::new();
    let mut first: Option<(u64, anyhow::Error)> = None;
    for outcome in outcomes {
        match outcome {
            Ok(worker) => ended.push(worker),
            Err((sequence, error)) => {
                if first.as_ref().is_none_or(|(before, _)| sequence < *before) {
                    first = Some((sequence, error));
                }
            }
        }
    }
    first.map_or(Ok(ended), |(_, error)| Err(error))
}

/// Where an error is, in words.
struct Told<'s> {
    source: &'s Source,
    file: usize,
}

impl Told<'_> {
    fn name(&self) -> String {
        self.source.path(self.file).display().to_string()
    }

    fn row(&self, line: u64, message: &str) -> anyhow::Error {
        Unusable::new(format!("{}:{line}: {message}", self.name()), ROW_HINT).into()
    }

    fn column(&self, line: u64, column: &str, message: &str, hint: &str) -> anyhow::Error {
        let message = format!("{}:{line}: column `{column}`: {message}", self.name());
        Unusable::new(message, if hint.is_empty() { ROW_HINT } else { hint }).into()
    }

    fn fault(&self, line: u64, fault: RowFault) -> anyhow::Error {
        match fault {
            RowFault::Other(error) => error,
            RowFault::Cell { column, message, hint } => {
                let columns = self.source.settings(self.file).map_or(&[][..], |settings| &settings.columns);
                self.column(line, columns.get(column).map_or("", String::as_str), &message, &hint)
            }
        }
    }
}

const ROW_HINT: &str = "put the row right in the file, or export it again; no row is ever left out";

fn read_block(
    source: &Source,
    block: &Block,
    buffer: &[u8],
    ends: &mut Vec<u32>,
    take: impl FnMut(Row<'_, '_>) -> Result<(), RowFault>,
) -> Result<()> {
    let told = Told { source, file: block.file };
    let bytes = &buffer[block.start..];
    let line_at = |at: usize| block.line + memchr_iter(b'\n', &bytes[..at]).count() as u64;
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A row that is cut may be cut inside a letter.
        Err(error) if block.is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()])?
        }
        Err(error) => return Err(not_text(&told.name(), line_at(error.valid_up_to())).into()),
    };
    if let Some(at) = memchr(0, bytes) {
        return Err(told.row(line_at(at), "there is a NUL byte, which no text has"));
    }
    match &*block.layout {
        Layout::Csv(layout) => read_csv(&told, block, layout, text, ends, take),
        Layout::JsonLines => read_json(&told, block, text, take),
    }
}

fn read_csv<'a>(
    told: &Told<'_>,
    block: &Block,
    layout: &CsvLayout,
    text: &'a str,
    ends: &mut Vec<u32>,
    mut take: impl FnMut(Row<'_, 'a>) -> Result<(), RowFault>,
) -> Result<()> {
    let columns = told.source.settings(told.file).map_or(0, |settings| settings.columns.len());
    let file = u32::try_from(block.file)?;
    let mut fields: Vec<Option<Cow<'a, str>>> = vec![None; columns];
    let mut reader = Fields::new(text, block.line, layout.delimiter, block.is_cut);
    ends.clear();
    if reader.is_cuttable() {
        marks::find(text.as_bytes(), layout.delimiter, ends);
    }
    let width = layout.header.len();
    let mut plain = PlainRows::new(text.as_bytes(), ends, layout.delimiter, width);
    loop {
        let (mut at, mut line) = (reader.read(), reader.line());
        while let Some(row) = plain.row(at) {
            for (position, slot) in &layout.places {
                let start = if *position == 0 { at } else { row[*position - 1] as usize + 1 };
                let field = &text[start..row[*position] as usize];
                let is_last = *position + 1 == width;
                let field = if is_last { field.strip_suffix('\r').unwrap_or(field) } else { field };
                fields[*slot] = Some(Cow::Borrowed(field));
            }
            take(Row { file, line, fields: &fields }).map_err(|fault| told.fault(line, fault))?;
            at = row[width - 1] as usize + 1;
            line += 1;
        }
        reader.go_to(at, line);
        let row = reader.row(|position, field| {
            if let Some(slot) = layout.wanted.get(position).filter(|slot| **slot != UNWANTED) {
                fields[*slot] = Some(field);
            }
        });
        match row {
            Ok(None) => return Ok(()),
            Ok(Some((line, count))) if count == width => {
                take(Row { file, line, fields: &fields }).map_err(|fault| told.fault(line, fault))?;
            }
            Ok(Some((line, count))) => return Err(told.row(line, &field_count(count, layout))),
            Err(fault) => {
                let name = fault.position.and_then(|position| layout.header.get(position));
                return Err(match name {
                    Some(name) => told.column(fault.line, name, &fault.message, ""),
                    None => told.row(fault.line, &fault.message),
                });
            }
        }
    }
}

fn field_count(count: usize, layout: &CsvLayout) -> String {
    let wanted = layout.header.len();
    let fields = if count == 1 { "field" } else { "fields" };
    match layout.header.get(count) {
        Some(first) => {
            format!("the row has {count} {fields} and the header {wanted}: column `{first}` is missing")
        }
        None => {
            format!("the row has {count} {fields} and the header {wanted}, after column `{}`", last(layout))
        }
    }
}

fn last(layout: &CsvLayout) -> &str {
    layout.header.last().map_or("", String::as_str)
}

fn read_json<'a>(
    told: &Told<'_>,
    block: &Block,
    text: &'a str,
    mut take: impl FnMut(Row<'_, 'a>) -> Result<(), RowFault>,
) -> Result<()> {
    let columns = told.source.settings(told.file).map_or(&[][..], |settings| &settings.columns);
    let file = u32::try_from(block.file)?;
    let mut fields = Vec::new();
    for (line, row) in (block.line..).zip(text.split_terminator('\n')) {
        if row.trim_ascii().is_empty() {
            continue;
        }
        if block.is_cut {
            return Err(
                told.row(line, &format!("the line is longer than {} MiB", super::ROW_BYTES_MAX >> 20))
            );
        }
        json_rows::row(row, columns, &mut fields).map_err(|fault| {
            match fault.column.and_then(|column| columns.get(column)) {
                Some(column) => told.column(line, column, &fault.message, ""),
                None => told.row(line, &fault.message),
            }
        })?;
        take(Row { file, line, fields: &fields }).map_err(|fault| told.fault(line, fault))?;
    }
    Ok(())
}
