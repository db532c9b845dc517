//! A statement that a team wrote: its named binds become positional ones, and it can be wrapped with a
//! filter. Pure; the one thing to get right is that texts and comments inside it are left alone.

use crate::config::{Unusable, suggestion};

/// A statement ready for the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The file, as errors name it.
    pub file: String,
    sql: String,
    /// Names of the binds in the order of their numbers, `$1` first.
    pub binds: Vec<&'static str>,
}

impl Statement {
    /// Reads one statement, in which `:name` may stand for each of `allowed`.
    ///
    /// # Errors
    /// When a bind is unknown, or there is no statement or more than one.
    pub fn parse(file: &str, text: &str, allowed: &[&'static str]) -> Result<Self, Unusable> {
        let mut reader = Reader { text: text.strip_prefix('\u{feff}').unwrap_or(text), at: 0 };
        let mut statement = Self { file: file.to_owned(), sql: String::new(), binds: Vec::new() };
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

    /// The statement, only rows whose `column` is one of `count` values. Their numbers follow its own.
    pub fn filtered(&self, column: &str, count: usize) -> String {
        let first = self.binds.len() + 1;
        let numbered: Vec<String> = (first..first + count).map(|number| format!("${number}")).collect();
        let list = format!("({})", numbered.join(", "));
        // The line break ends a comment that the statement may end with.
        format!("select * from (\n{}\n) q where q.{column} in {list}", self.sql)
    }
}

enum Token<'a> {
    /// Spaces and comments.
    Quiet(&'a str),
    /// Anything else, quoted texts whole.
    Text(&'a str),
    /// `:name`, without the colon.
    Bind(&'a str),
    /// A semicolon.
    End,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let token = match first {
            ';' => (1, Token::End),
            '\'' | '"' | '`' => {
                let length = rest[1..].find(first).map_or(rest.len(), |end| end + 2);
                (length, Token::Text(&rest[..length]))
            }
            _ if rest.starts_with("--") => {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDS: [&str; 2] = ["from_us", "until_us"];

    fn parse(text: &str) -> Result<Statement, String> {
        Statement::parse("effects.sql", text, &BINDS).map_err(|error| error.to_string())
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
    fn an_unknown_bind_is_named() {
        let error = Statement::parse("effects.sql", "select :from", &BINDS).unwrap_err();
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
