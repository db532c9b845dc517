//! What tables a side's database has: its catalogue, and a few words of columns whose values decide how they are read.
//! Read only, in one transaction, and bounded: so many columns, so many rows, so many words.

use super::reader::Reader;
use super::rows::{Cell, TeamRow};
use super::source::Source;
use crate::config::Settings;
use crate::proposal::{Column, Flavour, Kind, Schema, Table};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// Rows of a table in which words are looked for.
const SAMPLED_ROWS: usize = 10_000;
/// Distinct values that still are words of a kind or status.
const WORDS_MAX: usize = 50;
/// Letters of such a word.
const WORD_LETTERS_MAX: usize = 40;

/// A database's tables. `setting` is what named it, for errors.
///
/// # Errors
/// [`crate::config::Unusable`] when it cannot be opened with these settings; else when it cannot be read.
pub async fn describe(settings: &Settings, setting: &'static str) -> Result<Option<Schema>> {
    let Some(source) = Source::open(&settings.local.side, settings, setting).await? else { return Ok(None) };
    let flavour = source.flavour();
    let mut reader = source.reader().await?;
    let tables = tables(&mut reader, flavour).await?;
    let mut schema = Schema { flavour, tables };
    let wanted: Vec<(String, String, Column)> = schema
        .worth_sampling()
        .into_iter()
        .map(|(table, column)| (table.shown(), flavour.table_name(table), column.clone()))
        .collect();
    for (shown, name, column) in wanted {
        let words = words(&mut reader, flavour, &name, &column).await?;
        let table = schema.tables.iter_mut().find(|table| table.shown() == shown);
        if let (Some(table), Some(words)) = (table, words) {
            table.samples.insert(column.name, words);
        }
    }
    reader.end().await?;
    Ok(Some(schema))
}

async fn tables(reader: &mut Reader, flavour: Flavour) -> Result<Vec<Table>> {
    let (label, sql) = match flavour {
        Flavour::Sqlite => ("catalog/sqlite.sql", include_str!("../../queries/catalog/sqlite.sql")),
        Flavour::Postgres => ("catalog/postgres.sql", include_str!("../../queries/catalog/postgres.sql")),
        Flavour::MySql => ("catalog/mysql.sql", include_str!("../../queries/catalog/mysql.sql")),
    };
    let mut found: BTreeMap<(String, String), Table> = BTreeMap::new();
    let mut rows = reader.rows(label, sql.to_owned(), Vec::new()).await?;
    while let Some(row) = rows.next().await? {
        let [schema, name, column, declared] =
            [0, 1, 2, 3].map(|place| text(&row, place).unwrap_or_default());
        let table = found.entry((schema.clone(), name.clone())).or_insert_with(|| Table {
            schema,
            name,
            columns: Vec::new(),
            samples: BTreeMap::new(),
        });
        table.columns.push(Column { name: column, kind: Kind::of(&declared) });
    }
    Ok(found.into_values().collect())
}

/// The distinct values of a column, or one of an instant's; `None` where they are too many or too long to be words.
async fn words(
    reader: &mut Reader,
    flavour: Flavour,
    table: &str,
    column: &Column,
) -> Result<Option<BTreeSet<String>>> {
    let sql = flavour.sample(table, column, SAMPLED_ROWS, WORDS_MAX + 1);
    let label = format!("a look at {table}.{}", column.name);
    let mut rows = reader.rows(&label, sql, Vec::new()).await?;
    let mut words = BTreeSet::new();
    while let Some(row) = rows.next().await? {
        if let Some(word) = text(&row, 0) {
            words.insert(word);
        }
    }
    let is_word = |word: &String| {
        word.chars().count() <= WORD_LETTERS_MAX
            && !word.chars().any(|letter| letter.is_control() || letter == '@')
    };
    Ok((words.len() <= WORDS_MAX && words.iter().all(is_word)).then_some(words))
}

fn text(row: &TeamRow, place: usize) -> Option<String> {
    match row.cell(place).ok()? {
        Cell::Text(text) => Some(text.into_owned()),
        Cell::Integer(number) => Some(number.to_string()),
        Cell::Null | Cell::Real | Cell::Time | Cell::Blob => None,
    }
}
