//! Which column of which table a statement's column comes from, as far as the database says so.
//!
//! The one thing to get right: an answer that may be wrong is none. SQLite tells the first select of a union only, so each is
//! asked for by itself, and
//! MariaDB calls a select in a `from` by its alias, as if that were a table.

use super::catalog::TableName;
use super::reader::{Bind, Open, Pool, described, no_values, row_of_nulls};
use super::source::Source;
use super::statement::Statement;
use anyhow::Result;
use sqlx::{AssertSqlSafe, Column, ColumnOrigin, Executor, Row, SqlSafeStr, Statement as _};
use std::collections::{BTreeMap, BTreeSet};

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The table.
    pub table: TableName,
    /// The column's own name there.
    pub column: String,
}

/// The columns of each select of a statement by their names in lower case; those that are made of something, and those of
/// which nothing certain is known, are left out. One empty map where the statement cannot be taken apart.
///
/// # Errors
/// When the database cannot be asked.
pub(super) async fn origins(source: &Source, statement: &Statement) -> Result<Vec<BTreeMap<String, Origin>>> {
    let Some(selects) = statement.selects() else { return Ok(vec![BTreeMap::new()]) };
    let is_union = selects.len() > 1;
    let mut names: Vec<String> = Vec::new();
    let mut all = Vec::with_capacity(selects.len());
    for select in &selects {
        let columns = match of_select(source, select).await {
            Ok(columns) => columns,
            // It may say by itself less than it does in the union.
            Err(_) if is_union => return Ok(vec![BTreeMap::new()]),
            Err(error) => return Err(error),
        };
        if names.is_empty() {
            names = columns.iter().map(|(name, _)| name.clone()).collect();
        }
        // A union has the names of its first select.
        let named = names.iter().zip(columns).filter_map(|(name, (_, origin))| Some((name.clone(), origin?)));
        all.push(named.collect());
    }
    Ok(all)
}

async fn of_select(source: &Source, statement: &Statement) -> Result<Vec<(String, Option<Origin>)>> {
    let told = source.told();
    let stopped = |error: sqlx::Error| told.stopped(&statement.file, &error);
    let words = statement.words();
    let sql = AssertSqlSafe(statement.sql().to_owned()).into_sql_str();
    let opened = source.pool().begin(told.timeout).await.map_err(|error| told.unopened(&error))?;
    let mut found: Vec<(String, Option<Origin>)> = match opened {
        Open::Sqlite(mut transaction) => {
            named(transaction.prepare(sql).await.map_err(stopped)?.columns(), "")
        }
        Open::MySql(mut transaction) => {
            named(transaction.prepare(sql).await.map_err(stopped)?.columns(), "x")
        }
        Open::Postgres(mut transaction) => {
            let described = (described(statement.sql()), no_values(&statement.binds));
            let row = row_of_nulls(&mut transaction, &described).await.map_err(stopped)?;
            // A pooler may have this one connection only.
            transaction.rollback().await.map_err(stopped)?;
            let mut found = Vec::new();
            for column in row.columns() {
                let numbers = column.relation_id().zip(column.relation_attribute_no());
                let origin = match numbers {
                    Some((table, column)) => by_numbers(source, table.0, column).await?,
                    None => None,
                };
                found.push((column.name().to_lowercase(), origin));
            }
            found
        }
        Open::File(_) => Vec::new(),
    };
    let is_mysql = matches!(source.pool(), Pool::MySql(_));
    let aliases = if is_mysql { aliases(&words) } else { BTreeSet::new() };
    for (_, origin) in &mut found {
        if origin.as_ref().is_some_and(|origin| aliases.contains(&origin.table.name.to_lowercase())) {
            *origin = None;
        }
    }
    Ok(found)
}

/// `unnamed` is empty where a table without a schema is one of the side's own.
fn named<C: Column>(columns: &[C], unnamed: &str) -> Vec<(String, Option<Origin>)> {
    let origin = |column: &C| {
        let ColumnOrigin::Table(origin) = column.origin() else { return None };
        let table = match origin.table.split_once('.') {
            Some((schema, name)) => TableName { schema: schema.to_owned(), name: name.to_owned() },
            None if unnamed.is_empty() => TableName { schema: String::new(), name: origin.table.to_string() },
            None => return None,
        };
        Some(Origin { table, column: origin.name.to_string() })
    };
    columns.iter().map(|column| (column.name().to_lowercase(), origin(column))).collect()
}

async fn by_numbers(source: &Source, table: u32, column: i16) -> Result<Option<Origin>> {
    const SQL: &str = include_str!("../../queries/check/postgres_origin.sql");
    let mut reader = source.reader().await?;
    let binds = vec![Bind::Integer(table.into()), Bind::Integer(column.into())];
    let mut rows = reader.rows("the database's catalogue", SQL.to_owned(), binds).await?;
    let text = |row: &super::rows::TeamRow, place| match row.cell(place) {
        Ok(super::rows::Cell::Text(text)) => text.into_owned(),
        _ => String::new(),
    };
    let found = rows.next().await?.map(|row| Origin {
        table: TableName { schema: text(&row, 0), name: text(&row, 1) },
        column: text(&row, 2),
    });
    while rows.next().await?.is_some() {}
    drop(rows);
    reader.end().await?;
    Ok(found)
}

/// What selects in a `from` and in a `with` are called: `) name`, `) as name`, `name as (`.
fn aliases(words: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        let next = |ahead: usize| words.get(at + ahead).map_or("", String::as_str);
        if word == ")" {
            let name = if next(1) == "as" { next(2) } else { next(1) };
            found.insert(name.to_owned());
        }
        if next(1) == "as" && next(2) == "(" {
            found.insert(word.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_a_select_is_called_is_no_table() {
        let found =
            aliases(&words("with a as ( select 1 ) select x from ( select y from t ) as b , ( select 2 ) c"));
        for name in ["a", "b", "c"] {
            assert!(found.contains(name), "{name}");
        }
        assert!(!found.contains("t"));
    }
}
