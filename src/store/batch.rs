//! Multi-row statements from one-row templates: a statement file holds one `values (…)` tuple, and
//! this repeats it with fresh parameter numbers.
//!
//! Parameters outside of the tuple stand before it and keep their numbers.

use sqlx::AssertSqlSafe;

/// Rows per statement. Single-row inserts are many times slower; more than this gains nothing, and
/// the parameters of the widest statement (19 a row) stay under SQLite's limit of 32,766.
pub const CHUNK_ROWS: usize = 100;

/// The statement for `rows` rows.
///
/// # Panics
/// When the template has no `values ($n…)` tuple or `rows` is 0: both are mistakes of the program.
#[must_use]
pub fn repeat_values(template: &'static str, rows: usize) -> AssertSqlSafe<String> {
    assert!(rows > 0, "a statement for no rows: {template}");
    let body = without_comments(template);
    let start = body.find("values ($");
    assert!(start.is_some(), "no values tuple in: {template}");
    let open = start.unwrap_or(0) + "values ".len();
    let close = body[open..].find(')').map_or(body.len(), |at| open + at + 1);
    let tuple = &body[open..close];
    let (width, first) = (tuple.matches('$').count(), first_parameter(tuple));
    let mut text = String::with_capacity(body.len() + rows * (tuple.len() + 3 * width));
    text.push_str(&body[..open]);
    for row in 0..rows {
        text.push_str(if row == 0 { "" } else { ", " });
        for (column, part) in tuple.split('$').enumerate() {
            if column == 0 {
                text.push_str(part);
            } else {
                text.push('$');
                text.push_str(&(first + row * width + column - 1).to_string());
                text.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
            }
        }
    }
    text.push_str(&body[close..]);
    AssertSqlSafe(text)
}

fn without_comments(template: &str) -> String {
    let lines: Vec<&str> = template.lines().filter(|line| !line.starts_with("--")).collect();
    lines.join("\n")
}

fn first_parameter(tuple: &str) -> usize {
    let digits: String =
        tuple.chars().skip_while(|letter| *letter != '$').skip(1).take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_repeated_with_fresh_numbers() {
        let insert =
            "-- values ($9) in a comment\ninsert into t (a, b) values ($1, $2) on conflict do nothing";
        assert_eq!(
            repeat_values(insert, 2).0,
            "insert into t (a, b) values ($1, $2), ($3, $4) on conflict do nothing"
        );
        let update = "update t set a = $1 where (b, c) in (values ($2, $3)) returning b";
        assert_eq!(
            repeat_values(update, 2).0,
            "update t set a = $1 where (b, c) in (values ($2, $3), ($4, $5)) returning b"
        );
        let constant = "insert into t (a, b, c) values ($1, 0, $2)";
        assert_eq!(repeat_values(constant, 2).0, "insert into t (a, b, c) values ($1, 0, $2), ($3, 0, $4)");
    }
}
