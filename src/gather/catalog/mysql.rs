//! Tables of MySQL and MariaDB. The one thing to get right: `utf8mb4_bin` tells letters apart and still takes blanks
//! at the end for nothing (<https://dev.mysql.com/doc/refman/8.4/en/charset-binary-collations.html>).

use super::{Facts, Fields, TableName, add_part, read};
use crate::gather::reader::Reader;
use crate::gather::table::{Comparison, Dbms, Holds, Index, IndexPart, Relation, Table, TableColumn};
use anyhow::Result;

/// Engines with transactions.
const ENGINES: [&str; 4] = ["innodb", "rocksdb", "ndbcluster", "tokudb"];

pub(super) async fn describe(reader: &mut Reader, name: &TableName) -> Result<Option<Table>> {
    const TABLE: &str = include_str!("../../../queries/check/mysql_table.sql");
    const COLUMNS: &str = include_str!("../../../queries/check/mysql_columns.sql");
    const INDEXES: &str = include_str!("../../../queries/check/mysql_indexes.sql");
    let dbms = facts(reader).await?.dbms;
    let found = read(reader, TABLE, &[&name.schema, &name.name], 4).await?;
    let Some(head) = found.first() else { return Ok(None) };
    let (schema, name) = (head.text(0).to_owned(), head.text(1).to_owned());
    let is_table = head.text(2) == "BASE TABLE";
    let engine = head.text(3).to_owned();
    let is_safe = ENGINES.contains(&engine.to_ascii_lowercase().as_str());
    let columns = read(reader, COLUMNS, &[&schema, &name], 7).await?;
    let columns: Vec<TableColumn> = columns.iter().map(column).collect();
    let indexes = indexes(&read(reader, INDEXES, &[&schema, &name], 3).await?, &columns);
    Ok(Some(Table {
        dbms,
        schema,
        name,
        relation: if is_table { Relation::Table } else { Relation::Other },
        unsafe_engine: (is_table && !is_safe).then_some(engine),
        is_unlogged: false,
        columns,
        indexes,
        made_by: Vec::new(),
    }))
}

fn column(row: &Fields) -> TableColumn {
    let length = row.number(3).and_then(|length| u32::try_from(length).ok());
    let holds = match row.text(2) {
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => Holds::Text(length),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Holds::Bytes(length),
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double" | "bit" => {
            Holds::Number
        }
        "date" | "datetime" | "timestamp" | "time" | "year" => Holds::Time,
        "enum" | "uuid" => Holds::Exact,
        _ => Holds::Other,
    };
    TableColumn {
        name: row.text(0).to_owned(),
        type_name: row.text(1).to_owned(),
        holds,
        is_nullable: row.text(4) == "YES",
        comparison: if holds == Holds::Exact { Comparison::Exact } else { comparison(row.text(5)) },
        default: row.some(6).filter(|default| default != "NULL"),
    }
}

/// What a collation's name says of it. MySQL 8's own (`_0900_`) and those of MariaDB with `nopad` count blanks at the end.
fn comparison(collation: &str) -> Comparison {
    let by = || format!("the collation {collation}");
    if collation.is_empty() || collation == "binary" {
        Comparison::Exact
    } else if collation.ends_with("_ci") {
        Comparison::Folded(by())
    } else if collation.contains("_0900_") || collation.contains("nopad") {
        Comparison::Exact
    } else {
        Comparison::Padded(by())
    }
}

fn indexes(rows: &[Fields], columns: &[TableColumn]) -> Vec<Index> {
    let mut indexes = Vec::new();
    for row in rows {
        let column = row.some(1);
        let of_column = columns.iter().find(|found| Some(&found.name) == column.as_ref());
        let comparison = of_column.map(|found| found.comparison.clone()).unwrap_or_default();
        let prefix = row.number(2).and_then(|length| u32::try_from(length).ok());
        add_part(&mut indexes, row.text(0), IndexPart { column, prefix, comparison }, "");
    }
    indexes
}

pub(super) async fn facts(reader: &mut Reader) -> Result<Facts> {
    const VARIABLES: &str = "show global variables where variable_name in \
        ('tx_isolation', 'transaction_isolation', 'sql_mode', 'version')";
    let rows = read(reader, VARIABLES, &[], 2).await?;
    let value = |name: &str| rows.iter().find(|row| row.text(0) == name).map(|row| row.text(1).to_owned());
    let version = value("version").unwrap_or_default();
    let is_mariadb = version.to_ascii_lowercase().contains("mariadb");
    let isolation = value("transaction_isolation").or_else(|| value("tx_isolation")).unwrap_or_default();
    let mode = value("sql_mode").unwrap_or_default();
    Ok(Facts {
        dbms: if is_mariadb { Dbms::MariaDb } else { Dbms::MySql },
        version,
        isolation: isolation.to_ascii_lowercase().replace('-', " "),
        journal: String::new(),
        refuses_long_texts: mode.contains("STRICT_") || mode.contains("TRADITIONAL"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collation_says_in_its_name_what_it_tells_apart() {
        for name in ["utf8mb4_general_ci", "utf8mb4_0900_ai_ci", "latin1_swedish_ci", "utf8mb4_uca1400_ai_ci"]
        {
            assert!(matches!(comparison(name), Comparison::Folded(_)), "{name}");
        }
        for name in ["utf8mb4_bin", "latin1_bin", "latin1_general_cs"] {
            assert!(matches!(comparison(name), Comparison::Padded(_)), "{name}");
        }
        for name in ["", "binary", "utf8mb4_0900_bin", "utf8mb4_nopad_bin", "utf8mb4_0900_as_cs"] {
            assert_eq!(comparison(name), Comparison::Exact, "{name}");
        }
    }
}
