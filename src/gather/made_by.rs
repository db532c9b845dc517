//! The columns of a `create table` of SQLite, which keeps the statement as it was written and says nowhere else how a
//! column compares. Pure.

/// Where the list of columns begins (after its bracket) and ends (at its bracket); `None` where there is none, as in
/// `create table … as select`.
#[must_use]
pub fn body(sql: &str) -> Option<(usize, usize)> {
    let mut depth = 0_usize;
    let mut start = None;
    for (at, sign) in signs(sql) {
        match sign {
            '(' => {
                depth += 1;
                start = start.or(Some(at + 1));
            }
            ')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some((start?, at));
                }
            }
            _ => {}
        }
    }
    None
}

/// The definitions in it, columns first and constraints last, each with its place in the statement.
#[must_use]
pub fn definitions(sql: &str) -> Vec<(usize, &str)> {
    let Some((from, until)) = body(sql) else { return Vec::new() };
    let mut found = Vec::new();
    let (mut start, mut depth) = (from, 0_usize);
    for (at, sign) in signs(sql).filter(|(at, _)| (from..until).contains(at)) {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push((start, &sql[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push((start, &sql[start..until]));
    found
}

/// Place and text of a column's definition.
#[must_use]
pub fn of_column<'a>(sql: &'a str, column: &str) -> Option<(usize, &'a str)> {
    definitions(sql).into_iter().find(|(_, text)| name_of(text).eq_ignore_ascii_case(column))
}

/// The collation that a column is declared with, in lower case; `None`: SQLite's own, byte for byte.
#[must_use]
pub fn collation_of(sql: &str, column: &str) -> Option<String> {
    let (_, text) = of_column(sql, column)?;
    let plain = without_comments(text).to_lowercase();
    let mut words = plain.split_whitespace();
    // The last one counts.
    let mut found = None;
    while let Some(word) = words.next() {
        if word == "collate" {
            found =
                words.next().map(|name| name.trim_matches(['"', '\'', '`', '[', ']', ',', ')']).to_owned());
        }
    }
    found.filter(|name| name != "binary")
}

fn name_of(definition: &str) -> String {
    let plain = without_comments(definition);
    let text = plain.trim_start();
    let close = match text.chars().next() {
        Some(quote @ ('"' | '`' | '\'')) => quote,
        Some('[') => ']',
        _ => return text.split_whitespace().next().unwrap_or_default().to_owned(),
    };
    text[1..].split(close).next().unwrap_or_default().to_owned()
}

fn without_comments(text: &str) -> String {
    let mut plain: String = text.lines().map(|line| line.split("--").next().unwrap_or_default()).fold(
        String::new(),
        |mut all, line| {
            all.push_str(line);
            all.push('\n');
            all
        },
    );
    while let Some(from) = plain.find("/*") {
        let until = plain[from..].find("*/").map_or(plain.len(), |at| from + at + 2);
        plain.replace_range(from..until, " ");
    }
    plain
}

/// Letters outside of quotes and comments, with their places.
fn signs(sql: &str) -> impl Iterator<Item = (usize, char)> {
    let mut found = Vec::new();
    let mut rest = sql.char_indices().peekable();
    while let Some((at, sign)) = rest.next() {
        let after = rest.peek().map(|(_, next)| *next);
        match sign {
            '\'' | '"' | '`' => {
                rest.find(|(_, letter)| *letter == sign);
            }
            '[' => {
                rest.find(|(_, letter)| *letter == ']');
            }
            '-' if after == Some('-') => {
                rest.find(|(_, letter)| *letter == '\n');
            }
            '/' if after == Some('*') => {
                rest.next();
                let mut last = ' ';
                rest.find(|(_, letter)| std::mem::replace(&mut last, *letter) == '*' && *letter == '/');
            }
            _ => found.push((at, sign)),
        }
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQL: &str = "CREATE TABLE \"a(b\" (id integer primary key, -- the row (ours), not theirs
        [event id] text /* , */ collate NOCASE unique, amount decimal(12, 2) default (1),
        event_id TEXT check (event_id <> ','), unique (id, event_id)) without rowid";

    #[test]
    fn columns_are_found_as_they_were_written() {
        let found: Vec<String> = definitions(SQL).into_iter().map(|(_, text)| name_of(text)).collect();
        assert_eq!(found, ["id", "event id", "amount", "event_id", "unique"]);
        assert_eq!(collation_of(SQL, "event id").as_deref(), Some("nocase"));
        assert_eq!(collation_of(SQL, "event_id"), None);
        let (place, text) = of_column(SQL, "EVENT_ID").unwrap();
        assert!(SQL[place..].starts_with(text));
        assert_eq!(&SQL[body(SQL).unwrap().1..], ") without rowid");
        assert_eq!(body("create table t as select 1"), None);
    }
}
