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
    let (name, kept) =
        (quoted(Dbms::Sqlite, &table.name), quoted(Dbms::Sqlite, &format!("{}_before", table.name)));
    let made = format!("create table {name} ({changed}");
    let Some(dropped) = table.made_by.iter().skip(1).map(|sql| dropped(sql)).collect::<Option<Vec<_>>>()
    else {
        return Vec::new();
    };
    let again = table.made_by.iter().skip(1).cloned();
    let before = [
        // A shell that does not stop at an error must not begin before it has the lock.
        "pragma busy_timeout = 60000".to_owned(),
        "pragma foreign_keys = off".to_owned(),
        // A view on the table would not let it be renamed, and references to it would follow the old one.
        "pragma legacy_alter_table = on".to_owned(),
        "begin immediate".to_owned(),
        format!("alter table {name} rename to {kept}"),
    ];
    // Whatever does not fit takes everything back, and what stands below finds all as it was: it says so and does no harm.
    // Where the old name was taken (by an earlier repair), nothing was renamed, and nothing goes into a table that has rows.
    let filled = format!(
        "insert or rollback into {name} select * from {kept} where not exists (select 1 from {name})"
    );
    let end = format!("commit; /* look at both, then: drop table {kept} */ pragma legacy_alter_table = off");
    before.into_iter().chain(dropped).chain([made, filled]).chain(again).chain([end]).collect()
}

/// What takes an index or trigger away, whose name the new table's gets.
fn dropped(sql: &str) -> Option<String> {
    let mut words = sql.split_whitespace().skip(1).map(str::to_lowercase);
    let kind = words.find(|word| matches!(word.as_str(), "index" | "trigger"))?;
    let lower = sql.to_ascii_lowercase();
    let mut rest = sql[lower.find(&kind)? + kind.len()..].trim_start();
    if rest.to_ascii_lowercase().starts_with("if not exists") {
        rest = rest["if not exists".len()..].trim_start();
    }
    let name = match rest.chars().next()? {
        quote @ ('"' | '`') => rest.get(..=rest[1..].find(quote)? + 1)?,
        '[' => rest.get(..=rest.find(']')?)?,
        _ => rest.split(|letter: char| letter.is_whitespace() || letter == '(').next()?,
    };
    Some(format!("drop {kind} {name}"))
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
        let made = "create table \"events\" (id integer primary key, event_id text -- theirs\n    not null\n, at integer) strict";
        let made = made.replace("\"events\"", &quoted(Dbms::Sqlite, "events"));
        assert_eq!(found[5..7], ["drop index i".to_owned(), made]);
        assert!(found[7].starts_with("insert or rollback into "), "{found:?}");
        assert_eq!(found[8], "create index i on events (at)");
        assert!(found[9].starts_with("commit;") && found.iter().all(|sql| !sql.starts_with("drop table")));
        let both =
            rebuilt(&table(&[made_by]), &[change("event_id", "collate binary"), change("at", "not null")]);
        assert!(both[5].contains("collate binary\n, at integer not null) strict"), "{}", both[5]);
        for (sql, expected) in [
            ("CREATE UNIQUE INDEX IF NOT EXISTS \"a b\" on t (x)", "drop index \"a b\""),
            ("create trigger [t r] after insert on t begin select 1; end", "drop trigger [t r]"),
            ("create index k(x) on t", "drop index k"),
        ] {
            assert_eq!(dropped(sql).as_deref(), Some(expected));
        }
        for made_by in ["create table events as select 1", "create table events (id integer)"] {
            assert!(rebuilt(&table(&[made_by]), &[change("event_id", "not null")]).is_empty());
        }
    }
}
