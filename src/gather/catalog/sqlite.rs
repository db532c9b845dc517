//! Tables of SQLite. The two things that one would get wrong: a primary key may be null unless it is said not to be
//! (<https://sqlite.org/lang_createtable.html#the_primary_key>), and a declared type is an affinity.

use super::{Facts, Fields, TableName, add_part, read};
use crate::gather::made_by::collation_of;
use crate::gather::reader::Reader;
use crate::gather::table::{Comparison, Dbms, Holds, Index, IndexPart, Relation, Table, TableColumn};
use anyhow::Result;

pub(super) async fn describe(reader: &mut Reader, name: &TableName) -> Result<Option<Table>> {
    const TABLE: &str = include_str!("../../../queries/check/sqlite_table.sql");
    const COLUMNS: &str = include_str!("../../../queries/check/sqlite_columns.sql");
    const INDEXES: &str = include_str!("../../../queries/check/sqlite_indexes.sql");
    const MADE_BY: &str = include_str!("../../../queries/check/sqlite_made_by.sql");
    let found = read(reader, TABLE, &[&name.name], 3).await?;
    let Some(head) = found.first() else { return Ok(None) };
    let (name, is_table, is_without_rowid) = (head.text(0).to_owned(), head.text(1) == "table", head.is(2));
    let columns = read(reader, COLUMNS, &[&name], 4).await?;
    let made_by = read(reader, MADE_BY, &[&name], 1).await?;
    let made_by: Vec<String> = made_by.iter().map(|row| row.text(0).to_owned()).collect();
    let sql = made_by.first().map_or("", String::as_str);
    let is_composite = columns.iter().any(|row| row.number(3) == Some(2));
    let row_number = columns.iter().find(|row| is_row_number(row) && !is_composite && !is_without_rowid);
    let row_number = row_number.map(|row| row.text(0).to_owned());
    let columns = columns.iter().map(|row| column(row, is_without_rowid, sql)).collect();
    let mut indexes = indexes(&read(reader, INDEXES, &[&name], 5).await?);
    // It is the row's own number, so that nothing is listed for it.
    indexes.extend(row_number.map(|column| Index::plain("primary key", &[&column])));
    Ok(Some(Table {
        dbms: Dbms::Sqlite,
        schema: String::new(),
        name,
        relation: if is_table { Relation::Table } else { Relation::Other },
        unsafe_engine: None,
        is_unlogged: false,
        columns,
        indexes,
        made_by,
    }))
}

fn column(row: &Fields, is_without_rowid: bool, sql: &str) -> TableColumn {
    let type_name = row.text(1).to_owned();
    let is_key = row.number(3).is_some_and(|place| place > 0);
    TableColumn {
        name: row.text(0).to_owned(),
        holds: affinity(&type_name),
        type_name,
        is_nullable: !(row.is(2) || is_without_rowid && is_key || is_row_number(row)),
        comparison: comparison(&collation_of(sql, row.text(0)).unwrap_or_default()),
        default: None,
    }
}

/// <https://sqlite.org/lang_createtable.html#rowid>; of a key of two columns neither is one, and both are listed.
fn is_row_number(row: &Fields) -> bool {
    row.number(3) == Some(1) && row.text(1).eq_ignore_ascii_case("integer")
}

/// <https://sqlite.org/datatype3.html#determination_of_column_affinity>; a text in a column with the affinity of a
/// number becomes one where it looks like one: `007` and `7` are the same then.
fn affinity(type_name: &str) -> Holds {
    let type_name = type_name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| type_name.contains(word));
    if has(&["int"]) {
        Holds::Number
    } else if has(&["char", "clob", "text"]) {
        Holds::Text(None)
    } else if type_name.is_empty() || has(&["blob"]) {
        Holds::Bytes(None)
    } else {
        Holds::Number
    }
}

fn indexes(rows: &[Fields]) -> Vec<Index> {
    let mut indexes = Vec::new();
    for row in rows {
        let part = IndexPart { column: row.some(2), prefix: None, comparison: comparison(row.text(3)) };
        let is_new = add_part(&mut indexes, row.text(0), part, row.text(4));
        if let Some(index) = indexes.last_mut().filter(|_| is_new) {
            index.condition = row.is(1).then(|| condition(row.text(4)));
        }
    }
    indexes
}

fn comparison(collation: &str) -> Comparison {
    match collation.to_ascii_lowercase().as_str() {
        "" | "binary" => Comparison::Exact,
        "rtrim" => Comparison::Padded("collate rtrim".to_owned()),
        other => Comparison::Folded(format!("collate {other}")),
    }
}

/// What stands behind the last `where` of a statement.
fn condition(sql: &str) -> String {
    let at = sql.to_ascii_lowercase().rfind("where");
    at.and_then(|at| sql.get(at + "where".len()..)).unwrap_or_default().trim().to_owned()
}

pub(super) async fn facts(reader: &mut Reader) -> Result<Facts> {
    let rows = read(reader, "select sqlite_version(), journal_mode from pragma_journal_mode", &[], 2).await?;
    let text = |place| rows.first().map(|row| row.text(place).to_owned()).unwrap_or_default();
    Ok(Facts {
        dbms: Dbms::Sqlite,
        version: text(0),
        journal: text(1),
        isolation: "serializable".to_owned(),
        refuses_long_texts: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_type_is_an_affinity() {
        assert_eq!(affinity("VARCHAR(20)"), Holds::Text(None));
        assert_eq!(affinity("string"), Holds::Number);
        assert_eq!(affinity("bigint"), Holds::Number);
        assert_eq!(affinity(""), Holds::Bytes(None));
        assert_eq!(condition("CREATE UNIQUE INDEX k ON t (a) WHERE a IS NOT NULL"), "a IS NOT NULL");
    }
}
