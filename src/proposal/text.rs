//! The proposal as files: statements with their opening comments, and `recon.toml`.

use super::{Part, Proposal};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Columns of a comment.
const WIDTH: usize = 112;
/// Kinds of effect in the order of the contract.
const EFFECTS: [&str; 6] = ["credit", "refund", "dispute_withdrawn", "dispute_reinstated", "fee", "payout"];

/// Where the database is, as the configuration names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A URL that holds nothing secret.
    Open(String),
    /// The environment variable that holds the URL.
    Variable(String),
}

impl Place {
    fn as_toml(&self) -> String {
        match self {
            Self::Open(url) => quoted(url),
            Self::Variable(name) => format!("{{ env = {} }}", quoted(name)),
        }
    }
}

/// The files of a part with their opening comments.
pub(super) fn files(part: &Part) -> Vec<(&'static str, String)> {
    let files = part.statements.iter().enumerate();
    files
        .map(|(at, (file, statement))| (*file, format!("{}{statement}\n", head(part, file, at == 0))))
        .collect()
}

/// The first file of a part says what all of them take for granted.
fn head(part: &Part, file: &str, is_whole: bool) -> String {
    let what = match file {
        "effects.sql" => "What your books did: one row for each effect booked in the window.",
        "states.sql" => "What your books say of each payment whose status changed in the window.",
        "inbox.sql" => "What was received in the window.",
        "unbooked.sql" => {
            "What stands in your tables and is no effect: the rows that effects.sql leaves out, with your word for how they \
             stand. It is asked by object_id before something is booked as missing, and has no window. Whatever a list in \
             effects.sql gets more must leave the list here."
        }
        _ => "The body of one received event.",
    };
    let mut head = String::new();
    let tables = part.tables.join(", ");
    comment(&mut head, "", what);
    comment(
        &mut head,
        "",
        &format!("Proposed by `recon init --from` for {} ({tables}), and yours to change.", part.stack),
    );
    if is_whole {
        for (title, lines) in [("Taken for granted:", &part.assumed), ("Not there:", &part.missing)] {
            if !lines.is_empty() {
                comment(&mut head, "", title);
            }
            for line in lines {
                comment(&mut head, "  * ", line);
            }
        }
    } else {
        let first = part.statements.first().map_or("", |(file, _)| file);
        comment(&mut head, "", &format!("What it takes for granted stands in {first}."));
    }
    head
}

/// A text as lines of a comment.
fn comment(out: &mut String, bullet: &str, text: &str) {
    let mut line = format!("--{}{bullet}", if bullet.is_empty() { " " } else { "" });
    let indent = format!("--{}", " ".repeat(bullet.len().max(1)));
    let mut is_first = true;
    for word in text.split_whitespace() {
        if !is_first && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line.clone_from(&indent);
            is_first = true;
        }
        if !is_first {
            line.push(' ');
        }
        line.push_str(word);
        is_first = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// What can be checked, and what cannot.
pub(super) fn reach(proposal: &Proposal) -> Vec<String> {
    let mut lines = Vec::new();
    match (&proposal.inbox, &proposal.books) {
        (Some(_), Some(_)) => lines.push(
            "can be checked: events that never came, events that came and had no effect, payments and refunds booked \
             twice, not at all or wrong"
                .to_owned(),
        ),
        (Some(_), None) => lines.push(
            "can be checked: events that never came. Not whether they had their effect: no books were recognised"
                .to_owned(),
        ),
        (None, Some(_)) => lines.push(
            "can be checked: payments and refunds booked twice, not at all or wrong. Not events: no inbox was recognised, \
             so a payment that is not booked is a missing_effect, whatever became of its event"
                .to_owned(),
        ),
        (None, None) => lines.push("nothing can be checked yet: neither an inbox nor books were recognised".to_owned()),
    }
    if let Some(books) = &proposal.books {
        let left: Vec<&str> =
            EFFECTS.into_iter().take(4).filter(|kind| !books.effects.contains(kind)).collect();
        if !left.is_empty() {
            lines.push(format!("cannot be checked: {}: the books do not hold them", left.join(", ")));
        }
        let has_states =
            books.statements.iter().any(|(file, sql)| *file == "states.sql" && !sql.contains("and 1 = 0"));
        if !has_states {
            lines.push("cannot be checked: statuses".to_owned());
        }
    }
    lines
}

/// `recon.toml` for a proposal, made from the one that `recon init` writes. Without anything recognised both sides name the
/// database, and its statements are to be written.
#[must_use]
pub fn configuration(template: &str, proposal: &Proposal, place: &Place) -> String {
    let is_empty = !proposal.is_useful();
    let url = |is_there: bool| if is_there || is_empty { place.as_toml() } else { quoted("none") };
    let (inbox, local) = (url(proposal.inbox.is_some()), url(proposal.books.is_some()));
    let effects: Vec<&str> = match &proposal.books {
        Some(books) => EFFECTS.into_iter().filter(|kind| books.effects.contains(kind)).collect(),
        None => EFFECTS[..4].to_vec(),
    };
    let map = proposal.books.as_ref().map(|books| &books.status_map);
    let mut section = "";
    let mut out = String::new();
    for line in template.lines() {
        if line.starts_with('[') {
            section = line.split_whitespace().next().unwrap_or_default();
        }
        let name = line.split('=').next().unwrap_or_default().trim();
        match (section, name) {
            ("[inbox]", "url") => push(&mut out, line, &format!("url = {inbox}")),
            ("[local]", "url") => push(&mut out, line, &format!("url = {local}")),
            ("[[provider]]", "effects") => {
                let listed: Vec<String> = effects.iter().map(|kind| quoted(kind)).collect();
                push(&mut out, line, &format!("effects = [{}]", listed.join(", ")));
            }
            ("[local.status_map]", "# completed") => {
                out.push_str(line);
                out.push('\n');
                push_map(&mut out, map);
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// A setting with the comment that the template's line has.
fn push(out: &mut String, template: &str, setting: &str) {
    let comment = template.split_once(" # ").map(|(_, comment)| format!("# {comment}")).unwrap_or_default();
    let line = format!("{setting:<32} {comment}");
    out.push_str(line.trim_end());
    out.push('\n');
}

fn push_map(out: &mut String, map: Option<&BTreeMap<String, &'static str>>) {
    for (word, status) in map.into_iter().flatten() {
        let is_bare = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        let key = if is_bare && !word.is_empty() { word.clone() } else { quoted(word) };
        // Writing to a String cannot fail.
        writeln!(out, "{key} = \"{status}\"").unwrap_or_default();
    }
}

/// A text of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            letter if letter.is_control() => {
                write!(out, "\\u{:04x}", u32::from(letter)).unwrap_or_default();
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
