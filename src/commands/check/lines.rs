//! What `recon check` says: one line for each thing that was looked at. Pure.
//!
//! The one thing to get right: what was not looked at is never `ok`.

use crate::report::Outcome;
use serde::Serialize;
use std::fmt::Write;

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// As it should be.
    Ok,
    /// It works, and something about it should be known.
    Warning,
    /// It cannot be known from here; the line says what to set.
    NotChecked,
    /// It did not answer: the same command may say more later.
    Unreachable,
    /// It must be put right first.
    Failing,
}

impl Grade {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Ok, Self::Warning, Self::NotChecked, Self::Unreachable, Self::Failing];

    /// The word at the beginning of a line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::NotChecked => "not checked",
            Self::Unreachable => "unreachable",
            Self::Failing => "failing",
        }
    }
}

/// What is said, by its word in the second column: each has its section in `docs/check.md`.
pub const CODES: [&str; 36] = [
    "configuration",
    "webhook_secrets",
    "target",
    "store",
    "inbox",
    "books",
    "provider",
    "clock",
    "key_kind",
    "key_mode",
    "key_refused",
    "list_permission",
    "connected_account",
    "statement",
    "rows",
    "left_out",
    "isolation",
    "event_key",
    "effect_key",
    "key_unknown",
    "no_key",
    "key_condition",
    "key_invalid",
    "key_deferrable",
    "key_expression",
    "key_too_wide",
    "key_too_narrow",
    "key_nullable",
    "key_prefix",
    "key_folds_case",
    "key_ignores_blanks",
    "id_too_short",
    "id_not_text",
    "no_transactions",
    "emptied_by_crash",
    "long_ids_are_cut",
];

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// How it is.
    pub status: Grade,
    /// What was looked at, one of [`CODES`].
    pub check: &'static str,
    /// What there is, with the name of the thing.
    pub says: String,
    /// What would go wrong with it, in two sentences; empty where nothing would.
    pub story: String,
    /// What to do about it, in words.
    pub hint: String,
    /// A statement that shows what stands in the way of `fix`: it must give no row.
    pub first: String,
    /// The statements that put it right.
    pub fix: Vec<String>,
}

impl Line {
    /// A line without a story.
    #[must_use]
    pub fn new(status: Grade, check: &'static str, says: impl Into<String>) -> Self {
        debug_assert!(CODES.contains(&check), "{check} is not listed");
        Self {
            status,
            check,
            says: says.into(),
            story: String::new(),
            hint: String::new(),
            first: String::new(),
            fix: Vec::new(),
        }
    }

    /// With what would go wrong.
    #[must_use]
    pub fn told(mut self, story: impl Into<String>) -> Self {
        self.story = story.into();
        self
    }

    /// With what to do.
    #[must_use]
    pub fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// With the statements that put it right.
    #[must_use]
    pub fn fixed_by(mut self, fix: Vec<String>) -> Self {
        self.fix = fix;
        self
    }
}

/// What the lines together come to.
#[must_use]
pub fn outcome(lines: &[Line]) -> Outcome {
    let worst = lines.iter().map(|line| line.status).max();
    match worst {
        Some(Grade::Failing) => Outcome::Config,
        Some(Grade::Unreachable) => Outcome::Incomplete,
        _ => Outcome::Clean,
    }
}

/// The last line of stdout.
#[must_use]
pub fn last_line(lines: &[Line]) -> String {
    let mut text = format!("outcome={} findings=0", outcome(lines).as_str());
    for grade in Grade::ALL {
        let count = lines.iter().filter(|line| line.status == grade).count();
        if write!(text, " {}={count}", grade.as_str().replace(' ', "_")).is_err() {
            unreachable!("writing to a String cannot fail");
        }
    }
    text
}

const STATUS_WIDTH: usize = 13;
const CHECK_WIDTH: usize = 20;
/// Where texts are broken; statements are not.
const LINE_WIDTH: usize = 120;

/// The lines for reading.
#[must_use]
pub fn text(lines: &[Line]) -> String {
    let mut text = String::new();
    let margin = " ".repeat(STATUS_WIDTH + CHECK_WIDTH);
    for line in lines {
        let head = format!("{:<STATUS_WIDTH$}{:<CHECK_WIDTH$}", line.status.as_str(), line.check);
        push_wrapped(&mut text, &head, &margin, &line.says);
        push_wrapped(&mut text, &margin, &margin, &line.story);
        push_wrapped(&mut text, &margin, &margin, &line.hint);
        if !line.first.is_empty() {
            push_statements(&mut text, &margin, "must give no row first:", std::slice::from_ref(&line.first));
        }
        if !line.fix.is_empty() {
            push_statements(&mut text, &margin, "fix:", &line.fix);
        }
    }
    text
}

fn push_statements(text: &mut String, margin: &str, title: &str, statements: &[String]) {
    text.extend([margin, title, "\n"]);
    for statement in statements {
        for line in statement.lines() {
            text.extend([margin, "    ", line, "\n"]);
        }
        text.truncate(text.trim_end().len());
        text.push_str(";\n");
    }
}

fn push_wrapped(text: &mut String, head: &str, margin: &str, words: &str) {
    if words.is_empty() {
        return;
    }
    let mut line = head.to_owned();
    let mut is_begun = false;
    for word in words.split_whitespace() {
        if is_begun && line.chars().count() + 1 + word.chars().count() > LINE_WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            margin.clone_into(&mut line);
            is_begun = false;
        }
        if is_begun {
            line.push(' ');
        }
        line.push_str(word);
        is_begun = true;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_line_decides_and_a_warning_is_clean() {
        let line = |grade| Line::new(grade, "store", "x");
        assert_eq!(outcome(&[]), Outcome::Clean);
        assert_eq!(
            outcome(&[line(Grade::Ok), line(Grade::Warning), line(Grade::NotChecked)]),
            Outcome::Clean
        );
        assert_eq!(outcome(&[line(Grade::Unreachable), line(Grade::Ok)]), Outcome::Incomplete);
        assert_eq!(outcome(&[line(Grade::Failing), line(Grade::Unreachable)]), Outcome::Config);
        assert_eq!(
            last_line(&[line(Grade::Ok), line(Grade::NotChecked)]),
            "outcome=clean findings=0 ok=1 warning=0 not_checked=1 unreachable=0 failing=0"
        );
    }

    #[test]
    fn texts_are_broken_and_statements_are_not() {
        let long = "word ".repeat(40);
        let line = Line::new(Grade::Failing, "no_key", long.clone())
            .told("A story.")
            .fixed_by(vec![format!("select '{long}'")]);
        let text = text(&[line]);
        let margin = " ".repeat(33);
        assert!(text.starts_with("failing      no_key              word word"));
        assert!(text.lines().filter(|line| !line.contains("select")).all(|line| line.chars().count() <= 120));
        assert!(text.contains(&format!("\n{margin}A story.\n{margin}fix:\n{margin}    select 'word ")));
    }
}
