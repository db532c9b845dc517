//! A table of a side as its database describes it. Pure; `catalog/` fills it in.
//!
//! The one thing to get right: what decides whether two rows are the same is the *index*: its own collation, its
//! length of a column, its condition.

use std::fmt;

/// Which database a table is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dbms {
    /// A file.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL.
    MySql,
    /// MariaDB.
    MariaDb,
}

impl Dbms {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
        }
    }

    /// Whether it is MySQL or MariaDB.
    #[must_use]
    pub const fn is_mysql(self) -> bool {
        matches!(self, Self::MySql | Self::MariaDb)
    }
}

/// How two texts are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Comparison {
    /// Byte for byte.
    #[default]
    Exact,
    /// Blanks at the end do not count; what does so.
    Padded(String),
    /// Different bytes may be the same text, as upper and lower case; what does so.
    Folded(String),
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Text of so many characters; `None`: of any length.
    Text(Option<u32>),
    /// Bytes, so many; `None`: any number.
    Bytes(Option<u32>),
    /// A number.
    Number,
    /// A date or an instant.
    Time,
    /// A uuid, an enum, a truth value: something written in exactly one way.
    Exact,
    /// Anything else.
    Other,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Name.
    pub name: String,
    /// Its type as the database writes it.
    pub type_name: String,
    /// What it holds.
    pub holds: Holds,
    /// Whether it may be null.
    pub is_nullable: bool,
    /// How two of its values are told apart where no index says it otherwise.
    pub comparison: Comparison,
    /// MySQL: default, as it stands in a column's definition.
    pub default: Option<String>,
}

/// A part of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPart {
    /// The column; `None` where it is an expression.
    pub column: Option<String>,
    /// MySQL: only so many characters of it.
    pub prefix: Option<u32>,
    /// How two of its values are told apart.
    pub comparison: Comparison,
}

/// An index that is unique; others guarantee nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Name.
    pub name: String,
    /// The condition of the rows that it covers; `None`: all.
    pub condition: Option<String>,
    /// The statement that makes it, where a part of it is an expression.
    pub expression: Option<String>,
    /// PostgreSQL: usable; not what a failed `create index concurrently` left behind.
    pub is_valid: bool,
    /// PostgreSQL: checked at the end of a transaction.
    pub is_deferrable: bool,
    /// PostgreSQL: `nulls not distinct`.
    pub are_nulls_alike: bool,
    /// Its parts, in order.
    pub parts: Vec<IndexPart>,
}

impl Index {
    /// A plain one over these columns, as tests and primary keys have it.
    #[must_use]
    pub fn plain(name: &str, columns: &[&str]) -> Self {
        let part = |column: &&str| IndexPart {
            column: Some((*column).to_owned()),
            prefix: None,
            comparison: Comparison::Exact,
        };
        Self {
            name: name.to_owned(),
            condition: None,
            expression: None,
            is_valid: true,
            is_deferrable: false,
            are_nulls_alike: false,
            parts: columns.iter().map(part).collect(),
        }
    }

    /// Whether its expressions name a column.
    #[must_use]
    pub fn mentions(&self, column: &str) -> bool {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let mut words = self.expression.iter().flat_map(|text| text.split(|letter| !is_part(letter)));
        words.any(|word| word.eq_ignore_ascii_case(column))
    }

    /// Names of its columns; expressions are left out.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| part.column.as_deref())
    }
}

/// What rows are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// A table.
    Table,
    /// A table in partitions.
    Partitioned,
    /// A view, a foreign table or anything else that has no keys of its own.
    Other,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Database.
    pub dbms: Dbms,
    /// Schema, or the database of MySQL; empty on SQLite.
    pub schema: String,
    /// Name.
    pub name: String,
    /// What it is.
    pub relation: Relation,
    /// MySQL: the storage engine where it knows no transactions.
    pub unsafe_engine: Option<String>,
    /// PostgreSQL: emptied by a crash.
    pub is_unlogged: bool,
    /// Columns in their order.
    pub columns: Vec<TableColumn>,
    /// Unique indexes by name.
    pub indexes: Vec<Index>,
    /// SQLite: the statement that made it, then those of its indexes and triggers.
    pub made_by: Vec<String>,
}

impl Table {
    /// A column by its name; databases do not tell the case of names apart unless they are quoted.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&TableColumn> {
        let exact = self.columns.iter().find(|column| column.name == name);
        exact.or_else(|| self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)))
    }

    /// Its name as a statement may write it.
    #[must_use]
    pub fn quoted(&self) -> String {
        let name = quoted(self.dbms, &self.name);
        let is_default = self.schema.is_empty() || self.schema == "public" || self.dbms.is_mysql();
        if is_default { name } else { format!("{}.{name}", quoted(self.dbms, &self.schema)) }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A name as a statement writes it: quoted where it must be.
#[must_use]
pub fn quoted(dbms: Dbms, name: &str) -> String {
    let is_plain =
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            && name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && !RESERVED.contains(&name);
    if is_plain {
        return name.to_owned();
    }
    let quote = if dbms.is_mysql() { '`' } else { '"' };
    let doubled = name.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}

/// Words that a table of payments may be called by, and no statement takes unquoted.
const RESERVED: [&str; 16] = [
    "order",
    "user",
    "group",
    "key",
    "index",
    "table",
    "references",
    "transaction",
    "values",
    "check",
    "column",
    "default",
    "primary",
    "unique",
    "select",
    "option",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert_eq!(quoted(Dbms::Postgres, "webhook_events"), "webhook_events");
        assert_eq!(quoted(Dbms::Postgres, "WebhookEvents"), "\"WebhookEvents\"");
        assert_eq!(quoted(Dbms::Sqlite, "order"), "\"order\"");
        assert_eq!(quoted(Dbms::MariaDb, "a`b"), "`a``b`");
    }
}
