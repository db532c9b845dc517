//! Renders `docs/findings.md` from the doc comments at the head of the rule files, so that the page
//! cannot drift from the rules. Pure: sources come in through [`super::SOURCES`].
//!
//! A head has four headings: *What it flags · Why it matters · Usual causes · What to do*, each on a
//! `//!` line of its own (`//! # What it flags`) or at a line's start (`//! **What it flags.** An …`).

use super::Kind;
use std::collections::BTreeMap;

/// The headings of a rule's head, in order.
pub const HEADINGS: [&str; 4] = ["What it flags", "Why it matters", "Usual causes", "What to do"];

const HEAD: &str = "# Findings\n\n\
    Every kind of finding that `recon` reports, in the words of the rule that emits it.\n";

const FOOT: &str = "\n---\n\nThis page is generated from the head of each file in `src/findings/`; edit those, \
    and renew the page with `RECON_BLESS=1 cargo test docs_findings`.\n";

/// The page.
///
/// # Errors
/// When a source lacks a heading, has a heading without text, or a kind stands twice; names the kind.
pub fn render(sources: &[(Kind, &str)]) -> Result<String, String> {
    let mut by_kind = BTreeMap::new();
    for (kind, source) in sources {
        if by_kind.insert(*kind, *source).is_some() {
            return Err(format!("{kind} has two sources"));
        }
    }
    let mut page = vec![HEAD.to_owned()];
    if !by_kind.is_empty() {
        let links: Vec<String> = by_kind.keys().map(|kind| format!("[`{kind}`](#{kind})")).collect();
        page.push(format!("\n{}\n", links.join(" · ")));
    }
    for (kind, source) in by_kind {
        page.push(format!("\n## {kind}\n"));
        for (heading, text) in sections(source).map_err(|problem| format!("{kind}: {problem}"))? {
            page.push(format!("\n### {heading}\n\n{text}\n"));
        }
    }
    page.push(FOOT.to_owned());
    Ok(page.concat())
}

/// The four sections of a rule file's head.
fn sections(source: &str) -> Result<Vec<(&'static str, String)>, String> {
    let mut texts: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut current = None;
    for line in source.lines().map_while(|line| line.trim_start().strip_prefix("//!")) {
        let line = line.strip_prefix(' ').unwrap_or(line).trim_end();
        if let Some((index, rest)) = heading(line) {
            if texts.insert(index, vec![rest]).is_some() {
                return Err(format!("`{}` stands twice", HEADINGS[index]));
            }
            current = Some(index);
        } else if let Some(lines) = current.and_then(|index| texts.get_mut(&index)) {
            lines.push(line);
        }
    }
    let mut list = Vec::new();
    for (index, heading) in HEADINGS.into_iter().enumerate() {
        let text = texts.get(&index).map(|lines| lines.join("\n")).unwrap_or_default();
        if text.trim().is_empty() {
            return Err(format!("no text under `{heading}`"));
        }
        list.push((heading, text.trim().to_owned()));
    }
    Ok(list)
}

/// Which heading a line begins with, and what follows it on that line.
fn heading(line: &str) -> Option<(usize, &str)> {
    let marks: &[char] = &['#', '*', '_', ' '];
    let bare = line.trim_start_matches(marks);
    let is_marked = bare.len() < line.len();
    let index = HEADINGS.iter().position(|heading| {
        bare.get(..heading.len()).is_some_and(|start| start.eq_ignore_ascii_case(heading))
    })?;
    let rest = &bare[HEADINGS[index].len()..];
    let text = rest.trim_start_matches(['*', '_', ':', '.', ' ']);
    // Without a mark, only a line that is nothing but the heading is one.
    (is_marked || text.is_empty())
        .then_some((index, text))
        .filter(|_| rest.is_empty() || rest.starts_with(['*', '_', ':', '.', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKDOWN: &str = "//! Missed events.\n//!\n//! # What it flags\n//! An event that\n//! never came.\n//!\n\
        //! # Why it matters\n//!\n//! Money.\n//! # Usual causes\n//! - a deploy\n//! - a firewall\n\
        //! # What to do\n//! Replay.\n\nuse x;\n//! not the head\n";
    const INLINE: &str = "//! *What it flags*: one.\n//! *Why it matters*: two.\n//! **Usual causes.** three\n\
        //! more three\n//! __What to do__ four\n";

    #[test]
    fn heads_of_both_forms_become_sections() {
        let page = render(&[(Kind::UnappliedEvent, INLINE), (Kind::MissedEvent, MARKDOWN)]).unwrap();
        let body = page.strip_prefix(HEAD).unwrap().strip_suffix(FOOT).unwrap();
        assert_eq!(
            body,
            "\n[`missed_event`](#missed_event) · [`unapplied_event`](#unapplied_event)\n\
             \n## missed_event\n\n### What it flags\n\nAn event that\nnever came.\n\n### Why it matters\n\nMoney.\n\
             \n### Usual causes\n\n- a deploy\n- a firewall\n\n### What to do\n\nReplay.\n\
             \n## unapplied_event\n\n### What it flags\n\none.\n\n### Why it matters\n\ntwo.\n\
             \n### Usual causes\n\nthree\nmore three\n\n### What to do\n\nfour\n"
        );
    }

    #[test]
    fn a_missing_section_is_named() {
        let cut = MARKDOWN.replace("# Why it matters", "# Why");
        assert_eq!(
            render(&[(Kind::MissedEvent, &cut)]),
            Err("missed_event: no text under `Why it matters`".into())
        );
        let twice = format!("{INLINE}//! # What to do\n//! again\n");
        assert_eq!(
            render(&[(Kind::MissedEvent, &twice)]),
            Err("missed_event: `What to do` stands twice".into())
        );
        let doubled = [(Kind::MissedEvent, INLINE), (Kind::MissedEvent, INLINE)];
        assert_eq!(render(&doubled), Err("missed_event has two sources".into()));
    }

    #[test]
    fn a_sentence_that_begins_like_a_heading_is_none() {
        assert_eq!(heading("What to do is a question"), None);
        assert_eq!(heading("# What to doubt"), None);
        assert_eq!(heading("## what to do"), Some((3, "")));
        assert_eq!(heading("What to do"), Some((3, "")));
    }
}
