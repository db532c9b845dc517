//! Tables of PostgreSQL.

use super::{Facts, Fields, TableName, add_part, read};
use crate::gather::reader::Reader;
use crate::gather::table::{Comparison, Dbms, Holds, Index, IndexPart, Relation, Table, TableColumn};
use anyhow::Result;

/// What `atttypmod` of a text counts besides its characters (`VARHDRSZ`).
const LENGTH_HEADER: i64 = 4;

pub(super) async fn describe(reader: &mut Reader, name: &TableName) -> Result<Option<Table>> {
    const TABLE: &str = include_str!("../../../queries/check/postgres_table.sql");
    const COLUMNS: &str = include_str!("../../../queries/check/postgres_columns.sql");
    const INDEXES: &str = include_str!("../../../queries/check/postgres_indexes.sql");
    let found = read(reader, TABLE, &[&name.schema, &name.name], 4).await?;
    let Some(head) = found.first() else { return Ok(None) };
    let (schema, name) = (head.text(0).to_owned(), head.text(1).to_owned());
    let relation = match head.text(2) {
        "r" => Relation::Table,
        "p" => Relation::Partitioned,
        _ => Relation::Other,
    };
    let is_unlogged = head.text(3) == "u";
    let columns = read(reader, COLUMNS, &[&schema, &name], 8).await?;
    let columns: Vec<TableColumn> = columns.iter().map(column).collect();
    let indexes = indexes(&read(reader, INDEXES, &[&schema, &name], 9).await?, &columns);
    Ok(Some(Table {
        dbms: Dbms::Postgres,
        schema,
        name,
        relation,
        unsafe_engine: None,
        is_unlogged,
        columns,
        indexes,
        made_by: Vec::new(),
    }))
}

fn column(row: &Fields) -> TableColumn {
    let base = row.text(2);
    let length = row.number(4).filter(|modifier| *modifier > LENGTH_HEADER);
    let length = length.and_then(|modifier| u32::try_from(modifier - LENGTH_HEADER).ok());
    let holds = match base {
        "varchar" | "bpchar" => Holds::Text(length),
        "text" | "citext" | "name" => Holds::Text(None),
        "bytea" => Holds::Bytes(None),
        "uuid" | "bool" => Holds::Exact,
        _ => match row.text(3) {
            "N" => Holds::Number,
            "D" => Holds::Time,
            "E" => Holds::Exact,
            _ => Holds::Other,
        },
    };
    let comparison = comparison(base, row.text(6), row.is(7) || row.some(6).is_none());
    TableColumn {
        name: row.text(0).to_owned(),
        type_name: row.text(1).to_owned(),
        holds,
        is_nullable: row.is(5),
        comparison,
        default: None,
    }
}

fn comparison(base: &str, collation: &str, is_deterministic: bool) -> Comparison {
    match base {
        "citext" => Comparison::Folded("the type citext".to_owned()),
        _ if !is_deterministic => Comparison::Folded(format!("the collation {collation}")),
        "bpchar" => Comparison::Padded("the type char(n)".to_owned()),
        _ => Comparison::Exact,
    }
}

fn indexes(rows: &[Fields], columns: &[TableColumn]) -> Vec<Index> {
    let mut indexes = Vec::new();
    for row in rows {
        let column = row.some(5);
        let of_column = columns.iter().find(|found| Some(&found.name) == column.as_ref());
        // An index may have a collation of its own; what a type does, no collation undoes.
        let by_type = of_column.map(|found| match &found.comparison {
            Comparison::Folded(by) if by.starts_with("the collation") => Comparison::Exact,
            other => other.clone(),
        });
        let comparison = match by_type.unwrap_or_default() {
            Comparison::Exact => comparison("", row.text(6), row.is(7)),
            other => other,
        };
        let is_new =
            add_part(&mut indexes, row.text(0), IndexPart { column, prefix: None, comparison }, row.text(8));
        if let Some(index) = indexes.last_mut().filter(|_| is_new) {
            index.condition = row.some(1);
            index.is_valid = row.is(2);
            index.is_deferrable = row.is(3);
            index.are_nulls_alike = row.is(4);
        }
    }
    indexes
}

pub(super) async fn facts(reader: &mut Reader) -> Result<Facts> {
    const FACTS: &str = include_str!("../../../queries/check/postgres_facts.sql");
    let rows = read(reader, FACTS, &[], 2).await?;
    let text = |place| rows.first().map(|row| row.text(place).to_owned()).unwrap_or_default();
    Ok(Facts {
        dbms: Dbms::Postgres,
        version: text(1),
        isolation: text(0),
        journal: String::new(),
        refuses_long_texts: true,
    })
}
