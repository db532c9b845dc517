//! A database's tables as a catalogue describes them, and a few sampled words. No row of anybody's data but those.

use std::collections::{BTreeMap, BTreeSet};

/// The family of a database: how its SQL is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
}

/// What a column holds, as far as a statement must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Integer,
    /// Exact decimal numbers; in SQLite floating-point ones, whatever the declaration says.
    Decimal,
    /// Floating-point numbers.
    Real,
    /// Texts.
    Text,
    /// One of a few words, in a type of the team's own.
    Word,
    /// True or false.
    Flag,
    /// Instants that know their zone.
    ZonedInstant,
    /// Instants without a zone, taken for UTC.
    Instant,
    /// JSON.
    Json,
    /// Bytes.
    Bytes,
    /// A UUID.
    Uuid,
    /// Anything else.
    Other,
}

impl Kind {
    /// What a declared type means. Sources: the data types chapters of PostgreSQL 18, MariaDB 11 and MySQL 8.4, and
    /// <https://sqlite.org/datatype3.html#determination_of_column_affinity>.
    #[must_use]
    pub fn of(declared: &str) -> Self {
        let declared = declared.trim().to_ascii_lowercase();
        let word: String = declared.chars().take_while(|letter| *letter != '(').collect();
        match word.trim() {
            _ if declared.starts_with("tinyint(1)") => Self::Flag,
            "boolean" | "bool" | "bit" => Self::Flag,
            "timestamp with time zone" | "timestamptz" => Self::ZonedInstant,
            "timestamp without time zone" | "timestamp" | "datetime" => Self::Instant,
            "json" | "jsonb" => Self::Json,
            "uuid" => Self::Uuid,
            "bytea" => Self::Bytes,
            // An enum, as all types of a team's own commonly are; it reads as its word.
            "user-defined" | "enum" | "set" => Self::Word,
            "interval" | "point" => Self::Other,
            word if word.contains("int") || word.contains("serial") => Self::Integer,
            word if ["char", "clob", "text", "name"].iter().any(|part| word.contains(part)) => Self::Text,
            word if word.contains("blob") || word.contains("binary") => Self::Bytes,
            word if ["real", "floa", "doub"].iter().any(|part| word.contains(part)) => Self::Real,
            word if word.starts_with("numeric") || word.starts_with("decimal") || word == "dec" => {
                Self::Decimal
            }
            "" => Self::Text,
            _ => Self::Other,
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name as the catalogue has it.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

impl Column {
    /// Whether it holds words.
    #[must_use]
    pub const fn has_words(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Word)
    }
}

/// Whether two names are the same to people: `createdAt` and `created_at`, in any case.
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    let letters = |name: &str| {
        name.chars().filter(|letter| *letter != '_').flat_map(char::to_lowercase).collect::<String>()
    };
    letters(one) == letters(other)
}

/// A table or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its schema, where it must be named; empty where the search path finds it.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// Sampled values by column, texts, sorted: distinct words, or one instant.
    pub samples: BTreeMap<String, BTreeSet<String>>,
}

impl Table {
    /// The column of that name, in any case, with or without underscores.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        let exact = self.columns.iter().find(|column| column.name == name);
        exact.or_else(|| self.columns.iter().find(|column| is_same_name(&column.name, name)))
    }

    /// Whether it has this name, or its singular.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        is_same_name(&self.name, name) || is_same_name(&self.name, name.trim_end_matches('s'))
    }

    /// The first of these columns that is there.
    #[must_use]
    pub fn first(&self, names: &[&str]) -> Option<&Column> {
        names.iter().find_map(|name| self.column(name))
    }

    /// Whether all of these are there, by exactly these names.
    #[must_use]
    pub fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.columns.iter().any(|column| column.name == *name))
    }

    /// Which of these are not there.
    #[must_use]
    pub fn lacking<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        names.iter().copied().filter(|name| !self.has(&[name])).collect()
    }

    /// What was sampled of a column; nothing where it was not or is empty.
    pub fn words<'a>(&'a self, column: &Column) -> impl Iterator<Item = &'a str> {
        self.samples.get(&column.name).into_iter().flatten().map(String::as_str)
    }

    /// The name as people write it.
    #[must_use]
    pub fn shown(&self) -> String {
        if self.schema.is_empty() { self.name.clone() } else { format!("{}.{}", self.schema, self.name) }
    }
}

/// The tables of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// How its SQL is written.
    pub flavour: Flavour,
    /// Its tables, by (schema, name).
    pub tables: Vec<Table>,
}

impl Schema {
    /// The table of that name in the search path.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.table_in("", name)
    }

    /// The table of that name in a schema.
    #[must_use]
    pub fn table_in(&self, schema: &str, name: &str) -> Option<&Table> {
        let is_it = |table: &&Table| table.schema == schema && table.name.eq_ignore_ascii_case(name);
        self.tables.iter().find(is_it)
    }

    /// The table, if it has these columns.
    #[must_use]
    pub fn table_with(&self, name: &str, columns: &[&str]) -> Option<&Table> {
        self.table(name).filter(|table| table.has(columns))
    }

    /// Which columns are worth a look at their values, by (schema, table): what decides is their name or type.
    #[must_use]
    pub fn worth_sampling(&self) -> Vec<(&Table, &Column)> {
        let all =
            self.tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
        all.filter(|(table, column)| {
            super::plain::is_candidate(table) && super::plain::is_worth_sampling(self.flavour, column)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_are_understood() {
        for (declared, kind) in [
            ("bigint", Kind::Integer),
            ("BIGINT UNSIGNED", Kind::Integer),
            ("int(11)", Kind::Integer),
            ("tinyint(1)", Kind::Flag),
            ("bool", Kind::Flag),
            ("character varying", Kind::Text),
            ("varchar(255)", Kind::Text),
            ("longtext", Kind::Text),
            ("USER-DEFINED", Kind::Word),
            ("enum('a','b')", Kind::Word),
            ("timestamp with time zone", Kind::ZonedInstant),
            ("timestamp(6) without time zone", Kind::Instant),
            ("datetime(6)", Kind::Instant),
            ("numeric(12,2)", Kind::Decimal),
            ("decimal", Kind::Decimal),
            ("double precision", Kind::Real),
            ("jsonb", Kind::Json),
            ("bytea", Kind::Bytes),
            ("varbinary(64)", Kind::Bytes),
            ("uuid", Kind::Uuid),
            ("", Kind::Text),
            ("interval", Kind::Other),
            ("inet", Kind::Other),
        ] {
            assert_eq!(Kind::of(declared), kind, "{declared}");
        }
    }
}
