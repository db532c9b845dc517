//! Multi-row statements from one-row templates: a statement file holds one `values (…)` tuple, and
//! this repeats it.
//!
//! On SQLite the parameters become `?`: it finds a numbered parameter by walking a list of all of them,
//! which makes a statement of some thousand parameters several times slower than its work. PostgreSQL
//! insists on numbers.

use super::Database;
use sqlx::AssertSqlSafe;
use std::borrow::Cow;

/// Rows per statement. Single-row inserts are many times slower; more than this gains little, and
/// the parameters of the widest statement (27 a row) stay far under the limits: 32,766 on SQLite
/// (<https://sqlite.org/limits.html>), 65,535 on PostgreSQL (a 16-bit count in its protocol).
pub const CHUNK_ROWS: usize = 100;

/// Rows per statement where a worker has thousands at hand, so that fewer answers are waited for.
const MANY_ROWS: usize = 1_000;

/// Rows in parts for one statement each: as many of a thousand as there are, the rest in parts of [`CHUNK_ROWS`].
/// Each number of rows is a statement of its own that the connection keeps, so the large ones have one number.
pub fn chunks<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let (many, rest) = rows.split_at(rows.len() - rows.len() % MANY_ROWS);
    many.chunks(MANY_ROWS).chain(rest.chunks(CHUNK_ROWS))
}

/// The statement for `rows` rows. Parameters are bound in the order of the text: those before the
/// tuple, then each row's.
///
/// # Panics
/// When the template has no `values ($n…)` tuple, its parameters do not stand in order, or `rows` is
/// 0: all are mistakes of the program.
#[must_use]
pub fn repeat_values(database: Database, template: &'static str, rows: usize) -> AssertSqlSafe<String> {
    assert!(rows > 0, "a statement for no rows: {template}");
    let body = unnumbered(template);
    let tuple_start = body.find("values (").map(|at| at + "values ".len());
    assert!(tuple_start.is_some(), "no values tuple in: {template}");
    let open = tuple_start.unwrap_or(0);
    let close = body[open..].find(')').map_or(body.len(), |at| open + at + 1);
    let tuple = &body[open..close];
    let mut text = String::with_capacity(body.len() + rows * (tuple.len() + 2));
    text.push_str(&body[..close]);
    for _ in 1..rows {
        text.push_str(", ");
        text.push_str(tuple);
    }
    text.push_str(&body[close..]);
    AssertSqlSafe(match database {
        Database::Sqlite => text,
        Database::Postgres => numbered(&text),
    })
}

/// A text for a column that is no key. PostgreSQL has no NUL in texts, so it becomes the replacement
/// character, on both stores: the same findings are recorded whichever the store is.
#[must_use]
pub fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Whether a store can hold this key. None holds one with a NUL, so nobody needs to look for it.
#[must_use]
pub fn is_storable(key: &str) -> bool {
    !key.contains('\0')
}

/// The template without its comments, with `?` for `$1`, `$2`, ….
fn unnumbered(template: &str) -> String {
    let lines: Vec<&str> = template.lines().filter(|line| !line.starts_with("--")).collect();
    let body = lines.join("\n");
    assert!(!body.contains('?'), "a question mark that is no parameter: {template}");
    let mut parts = body.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let number = &part[..part.len() - rest.len()];
        assert!(number.parse() == Ok(index + 1), "parameter ${number} does not stand in order: {template}");
        text.push('?');
        text.push_str(rest);
    }
    text
}

/// `$1`, `$2`, … for each `?`.
fn numbered(text: &str) -> String {
    const DIGITS: usize = 5;
    let mut parts = text.split('?');
    let mut numbered = String::with_capacity(text.len() * (DIGITS + 3) / 3);
    numbered.push_str(parts.next().unwrap_or_default());
    for (index, part) in parts.enumerate() {
        push_parameter(&mut numbered, index + 1);
        numbered.push_str(part);
    }
    numbered
}

/// A statement has thousands of them, so each is written without a text of its own.
fn push_parameter(text: &mut String, number: usize) {
    text.push('$');
    let mut unit = 1;
    while number / unit >= 10 {
        unit *= 10;
    }
    while unit > 0 {
        let digit = u32::try_from(number / unit % 10).unwrap_or_default();
        text.push(char::from_digit(digit, 10).unwrap_or_default());
        unit /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_repeated() {
        let insert =
            "-- values ($9) in a comment\ninsert into t (a, b) values ($1, 0, $2) on conflict do nothing";
        assert_eq!(
            repeat_values(Database::Sqlite, insert, 2).0,
            "insert into t (a, b) values (?, 0, ?), (?, 0, ?) on conflict do nothing"
        );
        let update = "update t set a = $1 where (b, c) in (values ($2, $3)) returning b";
        assert_eq!(
            repeat_values(Database::Sqlite, update, 2).0,
            "update t set a = ? where (b, c) in (values (?, ?), (?, ?)) returning b"
        );
        assert_eq!(
            repeat_values(Database::Postgres, update, 2).0,
            "update t set a = $1 where (b, c) in (values ($2, $3), ($4, $5)) returning b"
        );
        assert_eq!(
            repeat_values(Database::Sqlite, "select a from t where a in (values ($1))", 1).0,
            "select a from t where a in (values (?))"
        );
        let wide = repeat_values(Database::Postgres, "insert into t (a, b) values ($1, $2)", 60).0;
        assert!(wide.contains("($9, $10)") && wide.ends_with("($119, $120)"), "{wide}");
    }

    #[test]
    fn rows_are_parted_without_loss() {
        let rows: Vec<usize> = (0..2_350).collect();
        let sizes: Vec<usize> = chunks(&rows).map(<[usize]>::len).collect();
        assert_eq!(sizes, [1_000, 1_000, 100, 100, 100, 50]);
        assert_eq!(chunks(&rows).flatten().copied().collect::<Vec<_>>(), rows);
        assert_eq!(chunks::<usize>(&[]).count(), 0);
    }

    #[test]
    #[should_panic(expected = "does not stand in order")]
    fn parameters_out_of_order_are_a_mistake() {
        let _sql = repeat_values(Database::Sqlite, "update t set a = $2 where b in (values ($1))", 1);
    }
}
