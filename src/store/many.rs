//! Statements over many rows: the values are bound row by row, and each database is given them as it reads them fastest.
//!
//! SQLite repeats the tuple of the statement. PostgreSQL is given one array for each column: a statement of some thousand
//! parameters costs it, and the driver, more than many a write; and its text, so its plan, would differ with each number
//! of rows. The driver that serves both databases binds no arrays, so they are bound as the texts that they are cast from
//! (<https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO>).
//!
//! The one thing to get right: any text may stand in an array, so every one is quoted.

use super::Database;
use super::batch::{numbered, push_parameter, repeated, unnumbered};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Any, Arguments, AssertSqlSafe, Executor};
use std::pin::Pin;

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub enum Value<'v> {
    /// A text, never null.
    Text(&'v str),
    /// A number, or null.
    Number(Option<i64>),
    /// Bytes, never null.
    Bytes(&'v [u8]),
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl<'v> From<&'v [u8]> for Value<'v> {
    fn from(bytes: &'v [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

/// A statement over many rows, while its values are bound in the order of its text: those before the tuple, then each
/// row's.
pub struct Many {
    database: Database,
    /// Without comments, `?` for each parameter.
    template: String,
    /// From where to where in it the tuple stands, with its word `values`.
    tuple: (usize, usize),
    rows: usize,
    /// Parameters before the tuple.
    fixed: usize,
    /// Parameters of the tuple.
    width: usize,
    bound: usize,
    arguments: AnyArguments,
    columns: Vec<Column>,
    problem: Option<sqlx::Error>,
}

/// The answer that is waited for; in a box of its own, as it is part of many long ones.
pub type Rows<'e> = Pin<Box<dyn Future<Output = sqlx::Result<Vec<AnyRow>>> + Send + 'e>>;

/// A column for PostgreSQL: the text of an array; for bytes, of their places in all of them one after the other.
#[derive(Default)]
struct Column {
    array: String,
    lengths: String,
    bytes: Option<Vec<u8>>,
    array_type: &'static str,
}

/// The statement for `rows` rows.
///
/// # Panics
/// When the template has no `values ($n…)` tuple or parameters after it, its parameters do not stand in order, or `rows`
/// is 0: all are mistakes of the program.
#[must_use]
pub fn many(database: Database, template: &'static str, rows: usize) -> Many {
    const WORD: &str = "values ";
    assert!(rows > 0, "a statement for no rows: {template}");
    let text = unnumbered(template);
    let start = text.find("values (");
    assert!(start.is_some(), "no values tuple in: {template}");
    let start = start.unwrap_or(0);
    let end = text[start..].find(')').map_or(text.len(), |at| start + at + 1);
    let count = |text: &str| text.bytes().filter(|byte| *byte == b'?').count();
    assert!(count(&text[end..]) == 0, "a parameter after the tuple: {template}");
    let (fixed, width) = (count(&text[..start]), count(&text[start + WORD.len()..end]));
    let mut arguments = AnyArguments::default();
    let mut columns = Vec::new();
    match database {
        Database::Sqlite => arguments.reserve(fixed + width * rows, 0),
        Database::Postgres => columns.resize_with(width, Column::default),
    }
    let tuple = (start, end);
    Many { database, template: text, tuple, rows, fixed, width, bound: 0, arguments, columns, problem: None }
}

impl Many {
    /// The next value.
    #[must_use]
    pub fn bind<'v>(mut self, value: impl Into<Value<'v>>) -> Self {
        let value = value.into();
        let place = self.bound.checked_sub(self.fixed);
        self.bound += 1;
        match place {
            Some(place) if self.database == Database::Postgres => {
                self.columns[place % self.width].push(value)
            }
            _ => self.argue(value),
        }
        self
    }

    fn argue(&mut self, value: Value<'_>) {
        let added = match value {
            Value::Text(text) => self.arguments.add(text),
            Value::Number(number) => self.arguments.add(number),
            Value::Bytes(bytes) => self.arguments.add(bytes),
        };
        if let (Err(error), None) = (added, &self.problem) {
            self.problem = Some(sqlx::Error::Encode(error));
        }
    }

    /// Carries it out.
    ///
    /// # Errors
    /// What the database says.
    ///
    /// # Panics
    /// When values are missing: a mistake of the program.
    pub fn fetch_all<'e>(mut self, executor: impl Executor<'e, Database = Any> + 'e) -> Rows<'e> {
        assert!(
            self.bound == self.fixed + self.width * self.rows,
            "{} values for {}",
            self.bound,
            self.template
        );
        let text = match self.database {
            Database::Sqlite => repeated(&self.template, self.tuple, self.rows),
            Database::Postgres => self.over_arrays(),
        };
        let (problem, arguments) = (self.problem, self.arguments);
        Box::pin(async move {
            match problem {
                Some(problem) => Err(problem),
                None => sqlx::query_with(AssertSqlSafe(text), arguments).fetch_all(executor).await,
            }
        })
    }

    /// The statement with a `select` from arrays for its tuple; binds them.
    fn over_arrays(&mut self) -> String {
        let (start, end) = self.tuple;
        let mut number = self.fixed;
        let mut parameter = |cast: &str| {
            number += 1;
            let mut text = "cast(".to_owned();
            push_parameter(&mut text, number);
            text + " as " + cast + ")"
        };
        let (mut arrays, mut names, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (index, column) in std::mem::take(&mut self.columns).into_iter().enumerate() {
            arrays.push(format!("cast({} as {})", parameter("text"), column.array_type));
            names.push(format!("value_{index}"));
            self.argue(Value::Text(&closed(column.array)));
            let Some(bytes) = column.bytes else {
                values.push(format!("given.value_{index}"));
                continue;
            };
            arrays.push(format!("cast({} as {})", parameter("text"), column.array_type));
            names.push(format!("length_{index}"));
            self.argue(Value::Text(&closed(column.lengths)));
            values.push(format!(
                "substring({} from given.value_{index} for given.length_{index})",
                parameter("bytea")
            ));
            self.argue(Value::Bytes(&bytes));
        }
        let mut values = values.into_iter();
        let mut items = String::new();
        let tuple = &self.template[start..end];
        for part in tuple.trim_start_matches("values (").trim_end_matches(')').split_inclusive('?') {
            items.push_str(part.trim_end_matches('?'));
            items.extend(part.ends_with('?').then(|| values.next()).flatten());
        }
        format!(
            "{}select {items} from unnest({}) as given ({}){}",
            numbered(&self.template[..start]),
            arrays.join(", "),
            names.join(", "),
            &self.template[end..]
        )
    }
}

impl Column {
    fn push(&mut self, value: Value<'_>) {
        self.array.push(if self.array.is_empty() { '{' } else { ',' });
        match value {
            Value::Text(text) => {
                self.array_type = "text[]";
                push_quoted(&mut self.array, text);
            }
            Value::Number(number) => {
                self.array_type = "bigint[]";
                self.array.push_str(&number.map_or_else(|| "null".to_owned(), |number| number.to_string()));
            }
            Value::Bytes(bytes) => {
                self.array_type = "integer[]";
                let all = self.bytes.get_or_insert_default();
                // The first byte's place is 1.
                self.array.push_str(&(all.len() + 1).to_string());
                self.lengths.push(if self.lengths.is_empty() { '{' } else { ',' });
                self.lengths.push_str(&bytes.len().to_string());
                all.extend_from_slice(bytes);
            }
        }
    }
}

fn closed(mut array: String) -> String {
    array.push('}');
    array
}

fn push_quoted(array: &mut String, text: &str) {
    array.push('"');
    for part in text.split_inclusive(['"', '\\']) {
        match part.strip_suffix(['"', '\\']) {
            Some(plain) => {
                array.push_str(plain);
                array.push('\\');
                array.push_str(&part[plain.len()..]);
            }
            None => array.push_str(part),
        }
    }
    array.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_becomes_a_choice_from_arrays() {
        let insert =
            "-- a comment\ninsert into t (a, b, c, d) values ($1, 'x', $2, $3) on conflict do nothing";
        let mut statement = many(Database::Postgres, insert, 2);
        for (text, bytes) in [("a\"b", &b"12"[..]), ("c\\", b"345")] {
            statement = statement.bind(text).bind(bytes).bind(None);
        }
        let arrays: Vec<&str> = statement.columns.iter().map(|column| &*column.array).collect();
        assert_eq!(arrays, [r#"{"a\"b","c\\""#, "{1,3", "{null,null"]);
        assert_eq!(
            statement.over_arrays(),
            "insert into t (a, b, c, d) select given.value_0, 'x', substring(cast($4 as bytea) from given.value_1 for \
             given.length_1), given.value_2 from unnest(cast(cast($1 as text) as text[]), cast(cast($2 as text) as \
             integer[]), cast(cast($3 as text) as integer[]), cast(cast($5 as text) as bigint[])) as given (value_0, \
             value_1, length_1, value_2) on conflict do nothing"
        );
        let update = "update t set a = $1 where (b, c) in (values ($2, $3)) returning b";
        let mut statement = many(Database::Postgres, update, 1).bind("x").bind("y").bind(7);
        assert_eq!(
            statement.over_arrays(),
            "update t set a = $1 where (b, c) in (select given.value_0, given.value_1 from unnest(cast(cast($2 as text) \
             as text[]), cast(cast($3 as text) as bigint[])) as given (value_0, value_1)) returning b"
        );
    }
}
