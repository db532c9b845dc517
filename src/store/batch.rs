//! Multi-row statements from one-row templates: a statement file holds one `values (…)` tuple, and
//! this repeats it.
//!
//! The parameters become `?`: SQLite finds a numbered parameter by walking a list of all of them, which
//! makes a statement of some thousand parameters several times slower than its work. A store that
//! insists on numbers gets them here.

use sqlx::AssertSqlSafe;

/// Rows per statement. Single-row inserts are many times slower; more than this gains nothing, and
/// the parameters of the widest statement (19 a row) stay far under SQLite's limit of 32,766.
pub const CHUNK_ROWS: usize = 100;

/// The statement for `rows` rows. Parameters are bound in the order of the text: those before the
/// tuple, then each row's.
///
/// # Panics
/// When the template has no `values ($n…)` tuple, its parameters do not stand in order, or `rows` is
/// 0: all are mistakes of the program.
#[must_use]
pub fn repeat_values(template: &'static str, rows: usize) -> AssertSqlSafe<String> {
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
    AssertSqlSafe(text)
}

/// The template without its comments, with `?` for `$1`, `$2`, ….
fn unnumbered(template: &str) -> String {
    let lines: Vec<&str> = template.lines().filter(|line| !line.starts_with("--")).collect();
    let body = lines.join("\n");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_repeated() {
        let insert =
            "-- values ($9) in a comment\ninsert into t (a, b) values ($1, 0, $2) on conflict do nothing";
        assert_eq!(
            repeat_values(insert, 2).0,
            "insert into t (a, b) values (?, 0, ?), (?, 0, ?) on conflict do nothing"
        );
        let update = "update t set a = $1 where (b, c) in (values ($2, $3)) returning b";
        assert_eq!(
            repeat_values(update, 2).0,
            "update t set a = ? where (b, c) in (values (?, ?), (?, ?)) returning b"
        );
        assert_eq!(
            repeat_values("select a from t where a in (values ($1))", 1).0,
            "select a from t where a in (values (?))"
        );
    }

    #[test]
    #[should_panic(expected = "does not stand in order")]
    fn parameters_out_of_order_are_a_mistake() {
        let _sql = repeat_values("update t set a = $2 where b in (values ($1))", 1);
    }
}
