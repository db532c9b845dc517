//! A table of SQLite made again with a column that says more: SQLite changes no column of a table that is there
//! (<https://sqlite.org/lang_altertable.html#otheralter>). Pure.

use crate::gather::made_by::{body, of_column};
use crate::gather::table::{Dbms, Table, quoted};

/// What the definition of a column says besides.
pub type Change = (String, &'static str);

/// The statements, in one transaction; none where the table was not made in a way that is understood.
#[must_use]
pub fn rebuilt(table: &Table, changes: &[Change]) -> Vec<String> {
    let Some(sql) = table.made_by.first() else { return Vec::new() };
    let Some(changed) = changed(sql, changes) else { return Vec::new() };
    let is_computed =
        sql.to_lowercase().split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "generated");
    if is_computed {
        return Vec::new();
    }
    let (old, new) =
        (quoted(Dbms::Sqlite, &table.name), quoted(Dbms::Sqlite, &format!("{}_new", table.name)));
    let made = format!("create table {new} ({changed}");
    let again = table.made_by.iter().skip(1).cloned();
    let before = [
        "/* in the sqlite3 shell .bail on first: else it drops the table after a failed insert */ pragma foreign_keys = off"
            .to_owned(),
        // A view on the table would not let it be renamed.
        "pragma legacy_alter_table = on".to_owned(),
        "begin immediate".to_owned(),
        made,
        format!("insert into {new} select * from {old}"),
        format!("drop table {old}"),
        format!("alter table {new} rename to {old}"),
    ];
    before.into_iter().chain(again).chain(["commit".to_owned()]).collect()
}

/// What stands behind the opening bracket, with every change.
fn changed(sql: &str, changes: &[Change]) -> Option<String> {
    let (from, _) = body(sql)?;
    let mut text = sql.to_owned();
    for (column, more) in changes {
        let (place, definition) = of_column(&text, column)?;
        let end = place + definition.trim_end().len();
        // A comment at the end of a definition ends with its line.
        let gap = if definition.contains("--") { "\n    " } else { " " };
        text = format!("{}{gap}{more}{}", &text[..end], &text[end..]);
    }
    text.get(from..).map(str::to_owned)
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

    fn change(column: &str, more: &'static str) -> Change {
        (column.to_owned(), more)
    }

    #[test]
    fn a_column_says_more_and_all_else_stays() {
        let made_by =
            "CREATE TABLE events (id integer primary key, event_id text -- theirs\n, at integer) strict";
        let found =
            rebuilt(&table(&[made_by, "create index i on events (at)"]), &[change("event_id", "not null")]);
        let made = "create table events_new (id integer primary key, event_id text -- theirs\n    not null\n, at integer) strict";
        assert_eq!(found[3], made);
        assert_eq!(found[7..], ["create index i on events (at)", "commit"]);
        let both =
            rebuilt(&table(&[made_by]), &[change("event_id", "collate binary"), change("at", "not null")]);
        assert!(both[3].contains("collate binary\n, at integer not null) strict"), "{}", both[3]);
        for made_by in ["create table events as select 1", "create table events (id integer)"] {
            assert!(rebuilt(&table(&[made_by]), &[change("event_id", "not null")]).is_empty());
        }
    }
}
