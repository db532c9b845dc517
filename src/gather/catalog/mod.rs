//! What a side's database says of one of its tables: columns, unique indexes, engine. Catalogues are read, and no
//! row of the table.

mod mysql;
mod postgres;
mod sqlite;

use super::reader::{Bind, Pool, Reader};
use super::rows::Cell;
use super::source::Source;
use super::table::{Dbms, Index, IndexPart, Table};
use anyhow::Result;

/// A table by its name; the schema is empty where the statement's own search finds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableName {
    /// Schema, or the database of MySQL.
    pub schema: String,
    /// Name.
    pub name: String,
}

/// What holds for all of a side's database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which one it is.
    pub dbms: Dbms,
    /// Its version, as it says it.
    pub version: String,
    /// How transactions are kept apart by default, in lower case and with blanks.
    pub isolation: String,
    /// SQLite: how changes are kept until they are in the file; empty elsewhere.
    pub journal: String,
    /// Whether a text that is too long for its column is refused rather than cut.
    pub refuses_long_texts: bool,
}

/// Reads the description of a table; `None` where there is none of that name.
///
/// # Errors
/// When the database cannot be asked.
pub(super) async fn describe(source: &Source, name: &TableName) -> Result<Option<Table>> {
    let mut reader = source.reader().await?;
    let table = match source.pool() {
        Pool::Sqlite { .. } => sqlite::describe(&mut reader, name).await?,
        Pool::Postgres { .. } => postgres::describe(&mut reader, name).await?,
        Pool::MySql(_) => mysql::describe(&mut reader, name).await?,
    };
    reader.end().await?;
    Ok(table)
}

/// Reads what holds for the whole database.
///
/// # Errors
/// When the database cannot be asked.
pub(super) async fn facts(source: &Source) -> Result<Facts> {
    let mut reader = source.reader().await?;
    let facts = match source.pool() {
        Pool::Sqlite { .. } => sqlite::facts(&mut reader).await?,
        Pool::Postgres { .. } => postgres::facts(&mut reader).await?,
        Pool::MySql(_) => mysql::facts(&mut reader).await?,
    };
    reader.end().await?;
    Ok(facts)
}

/// A row of a catalogue, as texts.
struct Fields(Vec<Option<String>>);

impl Fields {
    fn text(&self, place: usize) -> &str {
        self.0.get(place).and_then(Option::as_deref).unwrap_or_default()
    }

    fn some(&self, place: usize) -> Option<String> {
        self.0.get(place).cloned().flatten()
    }

    fn number(&self, place: usize) -> Option<i64> {
        self.text(place).parse().ok()
    }

    fn is(&self, place: usize) -> bool {
        matches!(self.text(place), "1" | "true")
    }
}

/// Rows of `count` columns; texts and whole numbers are all that catalogues hold.
async fn read(reader: &mut Reader, sql: &str, binds: &[&str], count: usize) -> Result<Vec<Fields>> {
    let binds = binds.iter().map(|text| Bind::Text((*text).to_owned())).collect();
    let mut rows = reader.rows("the database's catalogue", sql.to_owned(), binds).await?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().await? {
        let field = |place| match row.cell(place) {
            Ok(Cell::Text(text)) => Some(text.into_owned()),
            Ok(Cell::Integer(number)) => Some(number.to_string()),
            _ => None,
        };
        found.push(Fields((0..count).map(field).collect()));
    }
    Ok(found)
}

/// Adds a part to the index of that name, which is the last one or a new one.
fn add_part(indexes: &mut Vec<Index>, name: &str, part: IndexPart, made_by: &str) -> bool {
    let expression = part.column.is_none().then(|| made_by.to_owned());
    match indexes.last_mut() {
        Some(last) if last.name == name => {
            last.parts.push(part);
            last.expression = last.expression.take().or(expression);
            false
        }
        _ => {
            let mut index = Index { expression, ..Index::plain(name, &[]) };
            index.parts.push(part);
            indexes.push(index);
            true
        }
    }
}
