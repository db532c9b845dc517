//! How each database says what the statements need: an instant, a window, a field of a JSON document.
//!
//! The one thing to get right: every instant that is read lies in the window by the same test to the microsecond, or an
//! edge would be read twice or never.

use super::schema::{Column, Flavour, Kind, Table};

/// How a column keeps an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// In a type of the database's own that knows its zone.
    Zoned,
    /// In one that does not.
    Plain,
    /// As text that SQLite's date functions read.
    Text,
    /// As a count since 1970, this many of it in a second.
    Count(u32),
}

const SECONDS: u32 = 1;
const MILLIS: u32 = 1_000;
const MICROS: u32 = 1_000_000;

impl Clock {
    /// How this column keeps an instant, and whether that was seen (in its type or a value) or is taken for granted.
    pub fn of(flavour: Flavour, table: &Table, column: &Column) -> Option<(Self, bool)> {
        let sample = table.words(column).next();
        let count = sample.and_then(|text| text.parse::<i64>().ok()).map(unit);
        Some(match (flavour, column.kind) {
            (_, Kind::Integer) => (Self::Count(count.unwrap_or(SECONDS)), count.is_some()),
            (Flavour::Sqlite, Kind::Instant | Kind::ZonedInstant | Kind::Text) => match (sample, count) {
                (Some(_), Some(unit)) => (Self::Count(unit), true),
                (Some(_), None) => (Self::Text, true),
                (None, _) => (Self::Text, column.kind != Kind::Text),
            },
            (Flavour::Postgres, Kind::ZonedInstant) => (Self::Zoned, true),
            (_, Kind::Instant) => (Self::Plain, true),
            _ => return None,
        })
    }
}

/// Which unit a count since 1970 is in: seconds until the year 5138, milliseconds from 1973 on.
const fn unit(count: i64) -> u32 {
    match count {
        ..100_000_000_000 => SECONDS,
        100_000_000_000..100_000_000_000_000 => MILLIS,
        _ => MICROS,
    }
}

impl Flavour {
    /// A name, quoted where it must be.
    pub(super) fn name(self, name: &str) -> String {
        let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            && !RESERVED.contains(&name);
        match self {
            _ if is_plain => name.to_owned(),
            Self::MySql => format!("`{}`", name.replace('`', "``")),
            Self::Sqlite | Self::Postgres => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    }

    /// A table's name with its schema where it needs one.
    pub(super) fn table(self, table: &Table) -> String {
        if table.schema.is_empty() {
            return self.name(&table.name);
        }
        format!("{}.{}", self.name(&table.schema), self.name(&table.name))
    }

    /// A column of the table that is called `alias`.
    pub(super) fn column(self, alias: &str, column: &Column) -> String {
        let name = self.name(&column.name);
        if alias.is_empty() { name } else { format!("{alias}.{name}") }
    }

    /// A table as a statement names it.
    #[must_use]
    pub fn table_name(self, table: &Table) -> String {
        self.table(table)
    }

    /// A statement that gives at most `count` distinct values of a column's first rows, or one value of an instant's.
    #[must_use]
    pub fn sample(self, table: &str, column: &Column, rows: usize, count: usize) -> String {
        let value = self.text(&self.name(&column.name));
        let (rows, count) = if super::plain::is_instant(column) { (1, 1) } else { (rows, count) };
        format!(
            "select distinct word from (select {value} as word from {table} where {} is not null limit {rows}) s limit {count}",
            self.name(&column.name)
        )
    }

    /// A column of words, so that it may be compared with a word that its type does not have.
    pub(super) fn word(self, alias: &str, column: &Column) -> String {
        let name = self.column(alias, column);
        if self == Self::Postgres && column.kind == Kind::Word { self.text(&name) } else { name }
    }

    /// An expression as text.
    pub(super) fn text(self, expression: &str) -> String {
        let kind = if self == Self::MySql { "char" } else { "text" };
        format!("cast({expression} as {kind})")
    }

    /// A text literal.
    pub(super) fn literal(self, text: &str) -> String {
        let text = text.replace('\'', "''");
        if self == Self::MySql { format!("'{}'", text.replace('\\', "\\\\")) } else { format!("'{text}'") }
    }

    /// An instant as Unix microseconds.
    pub(super) fn instant_us(self, clock: Clock, at: &str) -> String {
        match (self, clock) {
            (_, Clock::Count(MICROS)) => at.to_owned(),
            // An `int` of seconds would overflow.
            (Self::Postgres, Clock::Count(unit)) => format!("cast({at} as bigint) * {}", MICROS / unit),
            (_, Clock::Count(unit)) => format!("{at} * {}", MICROS / unit),
            (Self::Postgres, _) => format!("cast(extract(epoch from {at}) * 1000000 as bigint)"),
            (Self::MySql, _) => format!("cast(unix_timestamp({at}) * 1000000 as signed)"),
            (Self::Sqlite, _) => format!(
                "cast(strftime('%s', {at}) as integer) * 1000000\n        + cast(substr(strftime('%f', {at}), 4) as integer) * 1000"
            ),
        }
    }

    /// The condition that an instant lies in the window, or that there is none: a row that is left out in silence is
    /// missing, one without an instant stops the run and is named.
    pub(super) fn window_or_none(self, clock: Clock, at: &str, alias: &str) -> String {
        // Null where the text is no date, too.
        let none = if self.reads_text(clock) { alias } else { at };
        let bounds = self.bounds(clock, at, alias).join("\n        and ");
        format!("({none} is null or (\n        {bounds}\n    ))")
    }

    /// The condition that an instant lies in the window, on the bare column where an index may serve. `alias` is the name
    /// under which the select gives it in microseconds, which SQLite lets a condition use: a text that is no date there is
    /// null, and let through so that the run names the row.
    pub(super) fn window(self, clock: Clock, at: &str, alias: &str) -> String {
        if self.reads_text(clock) {
            return self.window_or_none(clock, at, alias);
        }
        self.bounds(clock, at, alias).join("\n    and ")
    }

    /// Whether an instant is a text that the database has to understand.
    const fn reads_text(self, clock: Clock) -> bool {
        matches!((self, clock), (Self::Sqlite, Clock::Text | Clock::Plain | Clock::Zoned))
    }

    fn bounds(self, clock: Clock, at: &str, alias: &str) -> [String; 2] {
        let bound = |name: &str| match (self, clock) {
            (_, Clock::Count(MICROS)) => format!(":{name}"),
            (Self::MySql, Clock::Count(unit)) => format!(":{name} / {}", MICROS / unit),
            // Rounded up: a whole number is at least a bound if and only if it is at least the next whole one.
            (_, Clock::Count(unit)) => format!("(:{name} + {}) / {}", MICROS / unit - 1, MICROS / unit),
            (Self::Postgres, Clock::Zoned) => format!("to_timestamp(:{name} / 1000000.0)"),
            (Self::Postgres, _) => format!("to_timestamp(:{name} / 1000000.0) at time zone 'UTC'"),
            (Self::MySql, _) => format!("from_unixtime(:{name} / 1000000)"),
            (Self::Sqlite, _) => format!(":{name}"),
        };
        // Texts of more than one form are compared as the instants that they mean.
        let at = if self.reads_text(clock) { alias } else { at };
        [format!("{at} >= {}", bound("from_us")), format!("{at} < {}", bound("until_us"))]
    }

    /// A field of a JSON document as text; null where it is not there.
    pub(super) fn json_text(self, document: &str, field: &str) -> String {
        match self {
            Self::Postgres => format!("({document} ->> '{field}')"),
            Self::MySql => format!("json_value({document}, '$.{field}')"),
            Self::Sqlite => format!("json_extract({document}, '$.{field}')"),
        }
    }

    /// A whole number in a JSON document.
    pub(super) fn json_integer(self, document: &str, field: &str) -> String {
        let text = self.json_text(document, field);
        match self {
            Self::Postgres => format!("cast({text} as bigint)"),
            Self::MySql => format!("cast({text} as signed)"),
            Self::Sqlite => text,
        }
    }

    /// The condition that a field of a JSON document is true.
    pub(super) fn json_is_true(self, document: &str, field: &str) -> String {
        let text = self.json_text(document, field);
        match self {
            Self::Postgres => format!("{text} = 'true'"),
            // MariaDB says 1, MySQL true.
            Self::MySql => format!("{text} in ('1', 'true')"),
            Self::Sqlite => format!("{text} = 1"),
        }
    }
}

/// Words that a column may be called and a statement may not use bare, in any of the three.
const RESERVED: [&str; 32] = [
    "all",
    "and",
    "as",
    "case",
    "check",
    "column",
    "condition",
    "default",
    "desc",
    "end",
    "from",
    "group",
    "groups",
    "in",
    "index",
    "int",
    "integer",
    "interval",
    "key",
    "keys",
    "limit",
    "order",
    "primary",
    "range",
    "references",
    "row",
    "rows",
    "select",
    "system",
    "table",
    "user",
    "when",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: Kind) -> Column {
        Column { name: name.to_owned(), kind }
    }

    fn table(sample: Option<&str>) -> Table {
        let mut table = Table {
            schema: String::new(),
            name: "t".to_owned(),
            columns: Vec::new(),
            samples: std::collections::BTreeMap::new(),
        };
        if let Some(sample) = sample {
            table.samples.insert("at".to_owned(), [sample.to_owned()].into());
        }
        table
    }

    #[test]
    fn how_an_instant_is_kept_is_seen_and_else_said() {
        use Flavour::{MySql, Postgres, Sqlite};
        for (flavour, kind, sample, expected) in [
            (Sqlite, Kind::Integer, Some("1767225600"), Some((Clock::Count(1), true))),
            (Sqlite, Kind::Instant, Some("1767225600000"), Some((Clock::Count(1_000), true))),
            (Sqlite, Kind::Instant, Some("2026-01-01 00:00:00"), Some((Clock::Text, true))),
            (Sqlite, Kind::Instant, None, Some((Clock::Text, true))),
            (Sqlite, Kind::Text, None, Some((Clock::Text, false))),
            (Postgres, Kind::Integer, Some("1767225600000000"), Some((Clock::Count(1_000_000), true))),
            (Postgres, Kind::Integer, None, Some((Clock::Count(1), false))),
            (Postgres, Kind::ZonedInstant, None, Some((Clock::Zoned, true))),
            (Postgres, Kind::Instant, None, Some((Clock::Plain, true))),
            (MySql, Kind::Instant, None, Some((Clock::Plain, true))),
            (Postgres, Kind::Text, Some("2026-01-01"), None),
            (MySql, Kind::Decimal, None, None),
        ] {
            let found = Clock::of(flavour, &table(sample), &column("at", kind));
            assert_eq!(found, expected, "{flavour:?} {kind:?} {sample:?}");
        }
    }

    #[test]
    fn names_are_quoted_only_where_they_must_be() {
        for (name, sqlite, mysql) in [
            ("payments", "payments", "payments"),
            ("order", "\"order\"", "`order`"),
            ("createdAt", "\"createdAt\"", "`createdAt`"),
            ("a\"b`c", "\"a\"\"b`c\"", "`a\"b``c`"),
        ] {
            assert_eq!(Flavour::Sqlite.name(name), sqlite);
            assert_eq!(Flavour::MySql.name(name), mysql);
        }
    }
}
