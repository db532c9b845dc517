//! The statements that put a fault right, in the database's own words. Pure.

use super::faults::{Fault, ID_CHARS_MAX};
use super::keys::{Key, Role};
use super::rebuild::{Change, rebuilt};
use crate::gather::table::{Comparison, Dbms, Holds, Index, Relation, Table, TableColumn, quoted};

/// Characters of four bytes in `InnoDB`'s 3072 bytes of a key
/// (<https://dev.mysql.com/doc/refman/8.4/en/innodb-limits.html>).
const INDEXED_CHARS_MAX: u32 = 768;

/// Statements that put a fault right; none where only a person can.
#[must_use]
pub fn fix(table: &Table, key: &Key, index: Option<&Index>, fault: &Fault) -> Vec<String> {
    match fault {
        Fault::NoKey | Fault::Condition(_) | Fault::TooWide(_) => unique(table, key),
        Fault::Expression => {
            let dropped = index.into_iter().flat_map(|index| dropped(table, index));
            unique(table, key).into_iter().chain(dropped).collect()
        }
        Fault::PerhapsTooWide(_) | Fault::OtherKey(..) => Vec::new(),
        Fault::Invalid => {
            let dropped =
                index.map(|index| format!("drop index concurrently {}", qualified(table, &index.name)));
            dropped.into_iter().chain(unique(table, key)).collect()
        }
        Fault::Deferrable => index.map(|index| not_deferrable(table, index)).into_iter().collect(),
        Fault::Nullable(column) => not_null(table, key, column),
        Fault::Prefix(column, _) => match index {
            Some(index) => {
                let (name, columns) = (q(table, &index.name), names(table, index.columns()));
                let whole = format!(
                    "alter table {} drop index {name}, add unique index {name} ({columns})",
                    t(table)
                );
                let widened = is_long_text(table, column).then(|| modified(table, column)).flatten();
                widened.into_iter().chain([whole]).collect()
            }
            None => Vec::new(),
        },
        Fault::Folds(column, _) | Fault::IgnoresBlanks(column, _) => exact(table, index, column),
    }
}

/// What must give no row before a unique index can be made.
#[must_use]
pub fn doubled(table: &Table, key: &Key) -> String {
    let columns = names(table, key.names().into_iter());
    format!("select {columns}, count(*) from {} group by {columns} having count(*) > 1", t(table))
}

/// The column as text of any id's length.
#[must_use]
pub fn widened(table: &Table, column: &str) -> Vec<String> {
    let (table_name, name) = (t(table), q(table, column));
    let is_number = table.column(column).is_some_and(|column| column.holds == Holds::Number);
    match table.dbms {
        Dbms::Postgres if is_number => {
            vec![format!("alter table {table_name} alter column {name} type text using cast({name} as text)")]
        }
        Dbms::Postgres => vec![format!("alter table {table_name} alter column {name} type text")],
        Dbms::MySql | Dbms::MariaDb => modified(table, column).into_iter().collect(),
        Dbms::Sqlite => Vec::new(),
    }
}

/// An index goes, while others write.
#[must_use]
pub fn dropped(table: &Table, index: &Index) -> Vec<String> {
    let concurrently = if table.dbms == Dbms::Postgres { "concurrently " } else { "" };
    vec![format!("drop index {concurrently}{}", qualified(table, &index.name))]
}

/// None where rows that undo others have the same columns.
fn unique(table: &Table, key: &Key) -> Vec<String> {
    if key.has_reversals {
        return Vec::new();
    }
    let columns = names(table, key.names().into_iter());
    let name = q(table, &index_name(table, key));
    let on = format!("{name} on {} ({columns})", t(table));
    match table.dbms {
        // Its key must have the columns of the partitions.
        Dbms::Postgres if table.relation == Relation::Partitioned => Vec::new(),
        Dbms::Postgres => vec![format!("create unique index concurrently {on}")],
        Dbms::Sqlite => vec![format!("create unique index {on}")],
        Dbms::MySql | Dbms::MariaDb => {
            let long = key.names().into_iter().filter(|column| is_long_text(table, column));
            let widened = long.filter_map(|column| modified(table, column));
            widened.chain([format!("alter table {} add unique index {name} ({columns})", t(table))]).collect()
        }
    }
}

fn index_name(table: &Table, key: &Key) -> String {
    const NAME_CHARS_MAX: usize = 48;
    let short: String = table.name.chars().take(NAME_CHARS_MAX).collect();
    let base = format!("{short}_{}", key.of.setting());
    let is_taken = |name: &str| table.indexes.iter().any(|index| index.name == name);
    let numbered = (2..).map(|number| format!("{base}_{number}"));
    [base.clone()].into_iter().chain(numbered).find(|name| !is_taken(name)).unwrap_or(base)
}

fn not_deferrable(table: &Table, index: &Index) -> String {
    let (name, columns) = (q(table, &index.name), names(table, index.columns()));
    format!("alter table {} drop constraint {name}, add constraint {name} unique ({columns})", t(table))
}

/// Rows without a part of the scope are the platform account's; what a row without an id is, only a person knows.
fn not_null(table: &Table, key: &Key, column: &str) -> Vec<String> {
    let name = q(table, column);
    let filled = filled(table, key, column).into_iter();
    match table.dbms {
        Dbms::Postgres => {
            filled.chain([format!("alter table {} alter column {name} set not null", t(table))]).collect()
        }
        Dbms::MySql | Dbms::MariaDb => filled.chain(modified(table, column)).collect(),
        Dbms::Sqlite => Vec::new(),
    }
}

fn filled(table: &Table, key: &Key, column: &str) -> Option<String> {
    let is_text = table.column(column).is_some_and(|column| matches!(column.holds, Holds::Text(_)));
    let (table_name, name) = (t(table), q(table, column));
    let is_filled = is_text && !is_id(key, column);
    is_filled.then(|| format!("update {table_name} set {name} = '' where {name} is null"))
}

fn is_id(key: &Key, column: &str) -> bool {
    key.columns.iter().any(|(other, role)| other.eq_ignore_ascii_case(column) && *role != Role::Scope)
}

/// What must give no row before a column can be said never to be null.
#[must_use]
pub fn nulls(table: &Table, key: &Key, column: &str) -> String {
    if filled(table, key, column).is_some() {
        return String::new();
    }
    format!("select * from {} where {} is null", t(table), q(table, column))
}

/// What a fault changes of a column's definition on SQLite, where that takes making the table again.
#[must_use]
pub fn change(table: &Table, fault: &Fault) -> Option<Change> {
    if table.dbms != Dbms::Sqlite {
        return None;
    }
    match fault {
        Fault::Nullable(column) => Some((column.clone(), "not null")),
        Fault::Folds(column, _) | Fault::IgnoresBlanks(column, _) if compares_itself(table, column) => {
            Some((column.clone(), "collate binary"))
        }
        _ => None,
    }
}

/// All that takes making the table again on SQLite, at once: each such statement is made from the table as it is now.
#[must_use]
pub fn made_again(table: &Table, key: &Key, faults: &[Fault]) -> Vec<String> {
    let changes: Vec<Change> = faults.iter().filter_map(|fault| change(table, fault)).collect();
    let statements = if changes.is_empty() { Vec::new() } else { rebuilt(table, &changes) };
    if statements.is_empty() {
        return statements;
    }
    let nullable = changes.iter().filter(|(_, more)| *more == "not null");
    let filled = nullable.filter_map(|(column, _)| filled(table, key, column));
    filled.chain(statements).collect()
}

fn compares_itself(table: &Table, column: &str) -> bool {
    table.column(column).is_some_and(|column| column.comparison != Comparison::Exact)
}

fn exact(table: &Table, index: Option<&Index>, column: &str) -> Vec<String> {
    let (table_name, name) = (t(table), q(table, column));
    let again = |index: &Index, collation: &str| {
        let part = |part: &str| {
            let is_it = part.eq_ignore_ascii_case(column);
            if is_it { format!("{} collate {collation}", q(table, part)) } else { q(table, part) }
        };
        let columns: Vec<String> = index.columns().map(part).collect();
        let dropped = format!("drop index {}", qualified(table, &index.name));
        vec![
            dropped,
            format!("create unique index {} on {table_name} ({})", q(table, &index.name), columns.join(", ")),
        ]
    };
    match table.dbms {
        Dbms::Postgres if compares_itself(table, column) => {
            vec![format!("alter table {table_name} alter column {name} type text collate \"C\"")]
        }
        Dbms::Postgres => index.map(|index| again(index, "\"C\"")).unwrap_or_default(),
        Dbms::MySql | Dbms::MariaDb => modified(table, column).into_iter().collect(),
        Dbms::Sqlite if compares_itself(table, column) => Vec::new(),
        Dbms::Sqlite => index.map(|index| again(index, "binary")).unwrap_or_default(),
    }
}

/// A column of a key as it should be, whatever is wrong with it: text that is compared byte for byte, long enough, and
/// never null.
fn modified(table: &Table, column: &str) -> Option<String> {
    let column = table.column(column)?;
    let default = column.default.as_ref().map(|default| format!(" default {default}")).unwrap_or_default();
    let kind = match column.holds {
        Holds::Text(_) | Holds::Number => {
            let collation =
                if table.dbms == Dbms::MariaDb { "utf8mb4_nopad_bin" } else { "utf8mb4_0900_bin" };
            format!("varchar({}) character set utf8mb4 collate {collation}", length(column))
        }
        _ => column.type_name.clone(),
    };
    Some(format!("alter table {} modify {} {kind} not null{default}", t(table), q(table, &column.name)))
}

/// What fits an index is left as it is.
fn length(column: &TableColumn) -> u32 {
    match column.holds {
        Holds::Text(Some(length)) if (ID_CHARS_MAX..=INDEXED_CHARS_MAX).contains(&length) => length,
        _ => ID_CHARS_MAX,
    }
}

/// A text that MySQL indexes the beginning of only.
fn is_long_text(table: &Table, column: &str) -> bool {
    let column = table.column(column);
    column.is_some_and(|column| {
        let is_text = |length: u32| length > INDEXED_CHARS_MAX || column.type_name.contains("text");
        matches!(column.holds, Holds::Text(Some(length)) if is_text(length))
    })
}

fn names<'a>(table: &Table, names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| q(table, name)).collect::<Vec<_>>().join(", ")
}

fn t(table: &Table) -> String {
    table.quoted()
}

fn q(table: &Table, name: &str) -> String {
    quoted(table.dbms, name)
}

/// The name of an index, which lies in its table's schema.
fn qualified(table: &Table, name: &str) -> String {
    let name = q(table, name);
    let is_default = table.schema.is_empty() || table.schema == "public";
    if is_default { name } else { format!("{}.{name}", q(table, &table.schema)) }
}

/// The engine with transactions.
#[must_use]
pub fn with_transactions(table: &Table) -> Vec<String> {
    vec![format!("alter table {} engine = InnoDB", t(table))]
}

/// Written ahead, as other tables are.
#[must_use]
pub fn logged(table: &Table) -> Vec<String> {
    vec![format!("alter table {} set logged", t(table))]
}

/// Whether a column can be held against an id at all.
#[must_use]
pub const fn is_text(column: &TableColumn) -> bool {
    !matches!(column.holds, Holds::Number | Holds::Time)
}
