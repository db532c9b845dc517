//! A table of SQLite made again with a column that says more: SQLite changes no column of a table that is there
//! (<https://sqlite.org/lang_altertable.html#otheralter>). Pure.

use crate::gather::made_by::{body, of_column};
use crate::gather::table::{Dbms, Table, quoted};

/// The statements, in one transaction; none where the table was not made in a way that is understood.
#[must_use]
pub fn rebuilt(table: &Table, column: &str, more: &str) -> Vec<String> {
    let Some(sql) = table.made_by.first() else { return Vec::new() };
    let (Some((from, _)), Some((place, definition))) = (body(sql), of_column(sql, column)) else {
        return Vec::new();
    };
    let is_computed = sql.to_lowercase().split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "generated");
    if is_computed {
        return Vec::new();
    }
    let (old, new) = (quoted(Dbms::Sqlite, &table.name), quoted(Dbms::Sqlite, &format!("{}_new", table.name)));
    let end = place + definition.trim_end().len();
    // A comment at the end of a definition ends with its line.
    let gap = if definition.contains("--") { "\n    " } else { " " };
    let made = format!("create table {new} ({}{gap}{more}{}", &sql[from..end], &sql[end..]);
    let again = table.made_by.iter().skip(1).cloned();
    let before = [
        "pragma foreign_keys = off".to_owned(),
        "begin immediate".to_owned(),
        made,
        format!("insert into {new} select * from {old}"),
        format!("drop table {old}"),
        format!("alter table {new} rename to {old}"),
    ];
    before.into_iter().chain(again).chain(["commit".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::table::Relation;

    fn table(made_by: &[&str]) -> Table {
        Table {
            dbms: Dbms::Sqlite,
            schema: String::new(),
            name: "events".to_owned(),
            relation: Relation::Table,
            unsafe_engine: None,
            is_unlogged: false,
            columns: Vec::new(),
            indexes: Vec::new(),
            made_by: made_by.iter().map(|sql| (*sql).to_owned()).collect(),
        }
    }

    #[test]
    fn a_column_says_more_and_all_else_stays() {
        let made = "CREATE TABLE events (id integer primary key, event_id text -- theirs\n, at integer) strict";
        let found = rebuilt(&table(&[made, "create index i on events (at)"]), "event_id", "not null");
        assert_eq!(
            found[2],
            "create table events_new (id integer primary key, event_id text -- theirs\n     not null\n, at integer) strict"
                .replace("theirs\n     not", "theirs\n    not")
        );
        assert_eq!(found[6..], ["create index i on events (at)", "commit"]);
        assert!(rebuilt(&table(&["create table events as select 1"]), "event_id", "not null").is_empty());
        assert!(rebuilt(&table(&[]), "event_id", "not null").is_empty());
    }
}
