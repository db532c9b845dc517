//! A statement that a team wrote: its named binds become positional ones, and it can be wrapped with a
//! filter. Pure; the one thing to get right is that texts and comments inside it are left alone.

use crate::config::{Unusable, suggestion};
use crate::proposal::Flavour;

/// How a database writes texts, comments and places for values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// SQLite and PostgreSQL: `$1`, and a bind that is used twice has one place.
    Numbered,
    /// MySQL and MariaDB: `?` for each use; backslashes escape inside of texts, `#` begins a comment, and `--`
    /// does only before a space (<https://dev.mysql.com/doc/refman/8.4/en/comments.html>).
    MySql,
}

/// A statement ready for the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The file, as errors name it.
    pub file: String,
    sql: String,
    syntax: Syntax,
    /// Names of the binds in the order of their places; those of `?` may be named more than once.
    pub binds: Vec<&'static str>,
}

impl Statement {
    /// Reads one statement, in which `:name` may stand for each of `allowed`.
    ///
    /// # Errors
    /// When a bind is unknown, or there is no statement or more than one.
    pub fn parse(file: &str, text: &str, syntax: Syntax, allowed: &[&'static str]) -> Result<Self, Unusable> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader { text, at: 0, syntax };
        let mut statement = Self { file: file.to_owned(), sql: String::new(), syntax, binds: Vec::new() };
        let mut has_words = false;
        let mut is_ended = false;
        while let Some(token) = reader.next_token() {
            match token {
                Token::Quiet(text) => {
                    // A comment after the end is dropped with the semicolon.
                    if !is_ended {
                        statement.sql += text;
                    }
                }
                Token::End => is_ended = true,
                _ if is_ended => {
                    return Err(Unusable::new(
                        format!("{file}: holds more than one statement"),
                        "leave the one select that gives the rows",
                    ));
                }
                Token::Text(text) => {
                    has_words = true;
                    statement.sql += text;
                }
                Token::Bind(name) => statement.bind(name, allowed)?,
                Token::Place => {
                    return Err(Unusable::new(
                        format!("{file}: holds a `?` that is no part of a text"),
                        format!("name what stands there: {}", colons(allowed)),
                    ));
                }
            }
        }
        if has_words {
            Ok(statement)
        } else {
            Err(Unusable::new(format!("{file}: holds no statement"), "`recon init` writes one to begin with"))
        }
    }

    fn bind(&mut self, name: &str, allowed: &[&'static str]) -> Result<(), Unusable> {
        let Some(known) = allowed.iter().find(|known| **known == name) else {
            return Err(Unusable::new(
                format!("{}: unknown bind :{name}", self.file),
                suggestion(name, allowed),
            ));
        };
        if self.syntax == Syntax::MySql {
            self.binds.push(known);
            self.sql.push('?');
            return Ok(());
        }
        let position = self.binds.iter().position(|bind| bind == known).unwrap_or_else(|| {
            self.binds.push(known);
            self.binds.len() - 1
        });
        self.sql.push('$');
        self.sql += &(position + 1).to_string();
        Ok(())
    }

    /// The statement.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Its words in lower case, without comments: names without their quotes, signs one by one, and each text as `''`.
    pub fn words(&self) -> Vec<String> {
        let mut reader = Reader { text: &self.sql, at: 0, syntax: self.syntax };
        let mut words: Vec<String> = Vec::new();
        let mut is_open = false;
        while let Some(token) = reader.next_token() {
            let text = match token {
                Token::Text(text) => text,
                _ => "",
            };
            let is_part =
                text.chars().all(|letter| letter.is_alphanumeric() || letter == '_') && !text.is_empty();
            match text.chars().next() {
                None => {}
                Some('\'') => words.push("''".to_owned()),
                Some(quote @ ('"' | '`')) => words.push(text.trim_matches(quote).to_lowercase()),
                Some(_) if is_part && is_open => {
                    if let Some(last) = words.last_mut() {
                        *last += &text.to_lowercase();
                    }
                }
                Some(_) => words.push(text.to_lowercase()),
            }
            is_open = is_part;
        }
        words
    }

    /// The statement's first rows.
    pub fn first_rows(&self, count: usize) -> String {
        format!("select * from (\n{}\n) q limit {count}", self.sql)
    }

    /// One row for all rows that share the texts `by`, byte for byte whatever the collation of a column is: these, the
    /// greatest `most`, and how many of them have no `id` (`without_id`). `None` where that cannot be said.
    pub fn grouped(&self, flavour: Flavour, by: &[&str], most: &str, id: &str) -> Option<String> {
        let exactly = |name: &&str| match flavour {
            Flavour::Postgres => Some(format!("cast(q.{name} as text) collate \"C\"")),
            Flavour::Sqlite => Some(format!("q.{name} collate binary")),
            Flavour::MySql => None,
        };
        let keys: Vec<String> = by.iter().map(exactly).collect::<Option<_>>()?;
        let texts: Vec<String> = keys.iter().zip(by).map(|(key, name)| format!("{key} as {name}")).collect();
        // The line break ends a comment that the statement may end with.
        Some(format!(
            "select {}, max(q.{most}) as {most}, count(*) - count(q.{id}) as without_id from (\n{}\n) q group by {}",
            texts.join(", "),
            self.sql,
            keys.join(", ")
        ))
    }

    /// The statement, only rows whose `column` is one of `count` values, bound after its own. The database
    /// compares as the column does, which may take other ids for the same: its index is used only so. Whoever
    /// reads the rows leaves out what is not the same byte for byte.
    pub fn filtered(&self, column: &str, count: usize) -> String {
        let first = self.binds.len() + 1;
        let places: Vec<String> = match self.syntax {
            Syntax::Numbered => (first..first + count).map(|number| format!("${number}")).collect(),
            Syntax::MySql => vec!["?".to_owned(); count],
        };
        let list = format!("({})", places.join(", "));
        // The line break ends a comment that the statement may end with.
        format!("select * from (\n{}\n) q where q.{column} in {list}", self.sql)
    }
}

fn colons(names: &[&str]) -> String {
    names.iter().map(|name| format!(":{name}")).collect::<Vec<_>>().join(", ")
}

enum Token<'a> {
    /// Spaces and comments.
    Quiet(&'a str),
    /// Anything else, quoted texts whole.
    Text(&'a str),
    /// `:name`, without the colon.
    Bind(&'a str),
    /// A place for a value that has no name.
    Place,
    /// A semicolon.
    End,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    syntax: Syntax,
}

impl<'a> Reader<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let token = match first {
            ';' => (1, Token::End),
            '?' if self.syntax == Syntax::MySql => (1, Token::Place),
            '\'' | '"' | '`' => {
                let length = self.quoted(rest, first);
                (length, Token::Text(&rest[..length]))
            }
            _ if self.begins_comment(rest) => {
                let length = rest.find('\n').unwrap_or(rest.len());
                (length, Token::Quiet(&rest[..length]))
            }
            _ if rest.starts_with("/*") => {
                let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
                (length, Token::Quiet(&rest[..length]))
            }
            _ if first.is_whitespace() => (first.len_utf8(), Token::Quiet(&rest[..first.len_utf8()])),
            // A cast, not a bind.
            ':' if rest.starts_with("::") => (2, Token::Text(&rest[..2])),
            ':' => {
                let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
                let length = rest[1..].find(|letter| !is_name(letter)).map_or(rest.len(), |end| end + 1);
                let name = &rest[1..length];
                if name.is_empty() { (1, Token::Text(":")) } else { (length, Token::Bind(name)) }
            }
            _ => (first.len_utf8(), Token::Text(&rest[..first.len_utf8()])),
        };
        self.at += token.0;
        Some(token.1)
    }

    /// How long the quoted text is that `rest` begins with, both quotes included.
    fn quoted(&self, rest: &str, quote: char) -> usize {
        let escapes = self.syntax == Syntax::MySql && quote != '`';
        let mut is_escaped = false;
        for (at, letter) in rest.char_indices().skip(1) {
            if is_escaped {
                is_escaped = false;
            } else if escapes && letter == '\\' {
                is_escaped = true;
            } else if letter == quote {
                return at + 1;
            }
        }
        rest.len()
    }

    /// Whether the rest of this line is a comment.
    fn begins_comment(&self, rest: &str) -> bool {
        let after = rest.strip_prefix("--");
        match self.syntax {
            Syntax::Numbered => after.is_some(),
            Syntax::MySql => {
                let is_apart = |after: &str| {
                    after.chars().next().is_none_or(|letter| letter.is_whitespace() || letter.is_control())
                };
                rest.starts_with('#') || after.is_some_and(is_apart)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDS: [&str; 2] = ["from_us", "until_us"];

    fn parse(text: &str) -> Result<Statement, String> {
        Statement::parse("effects.sql", text, Syntax::Numbered, &BINDS).map_err(|error| error.to_string())
    }

    fn parse_mysql(text: &str) -> Result<Statement, String> {
        Statement::parse("effects.sql", text, Syntax::MySql, &BINDS).map_err(|error| error.to_string())
    }

    #[test]
    fn groups_are_of_equal_bytes_where_a_database_can_say_so() {
        let text = "select a from t where at >= :from_us -- rows";
        let statement = Statement::parse("f.sql", text, Syntax::Numbered, &["from_us"]).unwrap();
        let of = |flavour| statement.grouped(flavour, &["a", "b"], "at", "id");
        let inner = "(\nselect a from t where at >= $1 -- rows\n)";
        let sqlite = "q.a collate binary as a, q.b collate binary as b, max(q.at) as at, \
                      count(*) - count(q.id) as without_id";
        assert_eq!(
            of(Flavour::Sqlite).unwrap(),
            format!("select {sqlite} from {inner} q group by q.a collate binary, q.b collate binary")
        );
        assert!(of(Flavour::Postgres).unwrap().contains("cast(q.a as text) collate \"C\" as a"));
        assert_eq!(of(Flavour::MySql), None);
    }

    #[test]
    fn mysql_has_one_place_for_each_use() {
        let statement =
            parse_mysql("select 1 where a >= :until_us and b < :from_us or c > :until_us").unwrap();
        assert_eq!(statement.sql(), "select 1 where a >= ? and b < ? or c > ?");
        assert_eq!(statement.binds, ["until_us", "from_us", "until_us"]);
        let wrapped = "select * from (\nselect 1 where a >= ? and b < ? or c > ?\n) q where q.a in (?, ?)";
        assert_eq!(statement.filtered("a", 2), wrapped);
    }

    #[test]
    fn mysql_has_texts_and_comments_of_its_own() {
        let text = r#"select 'it\'s :x', "a \" :y", `a\`, '\\', 5--3, '#' # :z ' ?
            , '?' -- :w;
            from t"#;
        assert_eq!(parse_mysql(text).unwrap().sql(), text);
        assert_eq!(parse_mysql("select '\\\\', :from_us").unwrap().sql(), "select '\\\\', ?");
        assert_eq!(parse_mysql("select 5--:from_us").unwrap().sql(), "select 5--?");
        assert_eq!(parse("select '\\', :from_us").unwrap().sql(), "select '\\', $1");
        assert!(parse_mysql("select @a := 1, ?").unwrap_err().contains("holds a `?`"));
    }

    #[test]
    fn binds_become_numbers_and_a_repeated_one_keeps_its_number() {
        let statement = parse("select 1 where a >= :from_us and a < :until_us or b > :from_us").unwrap();
        assert_eq!(statement.sql(), "select 1 where a >= $1 and a < $2 or b > $1");
        assert_eq!(statement.binds, ["from_us", "until_us"]);
        assert_eq!(parse("select :until_us").unwrap().binds, ["until_us"]);
    }

    #[test]
    fn texts_comments_and_casts_are_left_alone() {
        let text =
            "-- :not_a_bind; and a ' quote\nselect ':x;', \":y\", 'it''s :z', a::text /* :w ; */ from t";
        assert_eq!(parse(text).unwrap().sql(), text);
        assert_eq!(parse("select 1; -- done;\n").unwrap().sql(), "select 1");
    }

    #[test]
    fn one_statement_no_more_no_less() {
        assert!(parse("select 1; delete from t").unwrap_err().contains("more than one"));
        assert!(parse("-- nothing yet\n;").unwrap_err().contains("no statement"));
        assert!(parse("").unwrap_err().contains("no statement"));
    }

    #[test]
    fn words_are_names_and_signs() {
        let statement = parse("select 'union' as \"Of\", a.b -- union\nfrom t where x>=:from_us").unwrap();
        assert_eq!(
            statement.words(),
            ["select", "''", "as", "of", ",", "a", ".", "b", "from", "t", "where", "x", ">", "=", "$", "1"]
        );
    }

    #[test]
    fn an_unknown_bind_is_named() {
        let error = Statement::parse("effects.sql", "select :from", Syntax::Numbered, &BINDS).unwrap_err();
        assert_eq!(error.message, "effects.sql: unknown bind :from");
        assert!(error.hint.contains("did you mean `from_us`?"), "{}", error.hint);
    }

    #[test]
    fn a_filter_stands_outside_of_a_last_comment() {
        let statement = parse("select a from t where b >= :from_us -- last").unwrap();
        assert_eq!(
            statement.filtered("a", 2),
            "select * from (\nselect a from t where b >= $1 -- last\n) q where q.a in ($2, $3)"
        );
    }
}
