//! `recon init --from`: looks at a database, says what it recognises, writes statements for it, and says what they take for
//! granted.
//!
//! The one thing to get right: a URL may hold a password, so none is ever written or printed. The configuration names the
//! environment variable that it stands in.

use super::difference::difference;
use super::{CONFIGURATION, Folder, say};
use crate::cli::InitArgs;
use crate::commands::{Outcome, counted};
use crate::config::{FILE_NAME, Secret, Settings, Side, Unusable, parse};
use crate::gather::{DEFAULT_QUERIES, describe};
use crate::proposal::{Place, Proposal, Schema, configuration, recognise};
use crate::store::shown_url;
use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;

/// The variable that the configuration names where the URL was given on the command line.
const VARIABLE: &str = "BOOKS_URL";
const HINT: &str = "write it as sqlite:books.db, postgres://user@host/database or mysql://user@host/database";
/// Only what it takes to open a database for reading.
const SETTINGS: &str = "[[provider]]\nname = \"stripe\"\napi_key = { env = \"KEY\" }\n\
    [local]\nurl = { env = \"URL\" }\n[limits]\nstatement_timeout = \"30s\"\n";

pub(super) async fn propose(
    args: &InitArgs,
    folder: &Folder,
    out: &mut (dyn Write + Send),
) -> Result<Outcome> {
    let (option, url) = given(args)?;
    let settings = settings(option, url.reveal())?;
    let schema = describe(&settings, option).await?.context("a database is named")?;
    let proposal = recognise(&schema);
    let place = place(args, folder, url.reveal())?;
    let configuration = configuration(CONFIGURATION, &proposal, &place);
    let files = if proposal.is_useful() {
        proposal.files()
    } else {
        DEFAULT_QUERIES.map(|(name, text)| (name, text.to_owned())).to_vec()
    };
    let mut lines = recognised(&schema, &proposal, &shown_url(url.reveal()));
    if args.from.is_some() && has_password(url.reveal()) {
        lines.insert(
            0,
            format!(
                "warning: the URL on the command line holds a password, which now stands in the shell's history and is shown \
                 by `ps`: change it, and next time write `export {VARIABLE}=…` in a file that only you can read, and \
                 recon init --from-env {VARIABLE}"
            ),
        );
    }
    lines.push(String::new());
    let before = changes(folder, &configuration, &files)?;
    lines.extend(folder.write(&configuration, &files)?);
    lines.extend(before);
    lines.push(String::new());
    lines.extend(next(folder, &proposal, &place));
    let outcome = if proposal.is_useful() { Outcome::Clean } else { Outcome::Incomplete };
    if outcome != Outcome::Clean {
        lines.push(format!("outcome={} findings=0", outcome.as_str()));
    }
    say(out, &lines)?;
    Ok(outcome)
}

/// The option that was given, and the URL that it leads to.
fn given(args: &InitArgs) -> Result<(&'static str, Secret), Unusable> {
    if let Some(url) = &args.from {
        return Ok(("--from", Secret::new(url.trim().to_owned())));
    }
    let name = args.from_env.as_deref().unwrap_or_default();
    let url = std::env::var(name).ok().filter(|url| !url.trim().is_empty()).ok_or_else(|| {
        Unusable::new(
            format!("--from-env names the environment variable {name}, which is not set"),
            format!("export {name}=postgres://… in this shell, and run it again"),
        )
    })?;
    Ok(("--from-env", Secret::new(url.trim().to_owned())))
}

/// Whether a password stands in a URL: `scheme://user:password@host`.
fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    let is_in_query = rest
        .split_once('?')
        .is_some_and(|(_, query)| query.split('&').any(|part| part.starts_with("password=")));
    user.split_once(':').is_some_and(|(_, password)| !password.is_empty()) || is_in_query
}

/// The settings of a run that has this database, checked as `recon.toml` is.
fn settings(option: &str, url: &str) -> Result<Settings, Unusable> {
    let environment = |name: &str| Some(if name == "URL" { url.to_owned() } else { "unused".to_owned() });
    let settings = parse(SETTINGS, Path::new(FILE_NAME), &environment).map_err(|unusable| {
        let why = unusable.message.split_once("url ").map_or(&*unusable.message, |(_, why)| why);
        Unusable::new(format!("{option} {why}"), HINT)
    })?;
    // The words that stand for other sides in the configuration.
    let is_word = matches!(url, "store" | "none" | "files");
    if is_word || !matches!(settings.local.side, Side::Database(_)) {
        return Err(Unusable::new(format!("{option} is no database URL"), HINT));
    }
    Ok(settings)
}

/// How the configuration names the database.
fn place(args: &InitArgs, folder: &Folder, url: &str) -> Result<Place> {
    if let Some(name) = &args.from_env {
        return Ok(Place::Variable(name.clone()));
    }
    let Some(path) = url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) else {
        return Ok(Place::Variable(VARIABLE.to_owned()));
    };
    if folder.is_here() {
        return Ok(Place::Open(format!("sqlite:{path}")));
    }
    let path = std::path::absolute(path).context("find the database's folder")?;
    Ok(Place::Open(format!("sqlite:{}", path.display())))
}

/// What was looked at, what it is, what is taken for granted and what is not there.
fn recognised(schema: &Schema, proposal: &Proposal, shown: &str) -> Vec<String> {
    let tables = counted(schema.tables.len() as u64, "table", "tables");
    let mut lines = vec![format!("looked at {shown}: {tables}; nothing was written there")];
    let parts = [("inbox", &proposal.inbox), ("books", &proposal.books)];
    for (side, part) in parts {
        lines.push(match part {
            Some(part) => format!("{side}: {} ({})", part.stack, part.tables.join(", ")),
            None => format!("{side}: not recognised"),
        });
    }
    let known: Vec<_> = parts.into_iter().filter_map(|(_, part)| part.as_ref()).collect();
    let assumed = known.iter().flat_map(|part| &part.assumed);
    let missing = proposal.notes.iter().chain(known.iter().flat_map(|part| &part.missing));
    list(&mut lines, "taken for granted:", assumed);
    list(&mut lines, "not there:", missing);
    let near: Vec<String> = proposal.near.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    if proposal.inbox.is_none() || proposal.books.is_none() {
        list(&mut lines, "tables that look near:", near.iter());
    }
    lines.push(String::new());
    lines.extend(proposal.reach());
    lines
}

fn list<'a>(lines: &mut Vec<String>, title: &str, of: impl Iterator<Item = &'a String>) {
    let mut of = of.peekable();
    if of.peek().is_some() {
        lines.push(title.to_owned());
    }
    lines.extend(of.map(|line| format!("  - {line}")));
}

/// What would change in files that are there.
fn changes(folder: &Folder, configuration: &str, files: &[(&str, String)]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let queries = folder.path.join("queries").join("local");
    let all = std::iter::once((folder.path.join(FILE_NAME), configuration))
        .chain(files.iter().map(|(name, text)| (queries.join(name), text.as_str())));
    for (path, proposed) in all {
        let there = match std::fs::read_to_string(&path) {
            Ok(there) => there,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
        };
        let changed = difference(&there, proposed);
        if !changed.is_empty() {
            lines.push(String::new());
            lines.push(format!("{} stays; the proposal would change:", path.display()));
            lines.extend(changed);
        }
    }
    Ok(lines)
}

fn next(folder: &Folder, proposal: &Proposal, place: &Place) -> Vec<String> {
    let config = folder.option();
    let mut steps = Vec::new();
    if proposal.is_useful() {
        steps.push(
            "read the opening comments of queries/local/*.sql: what they take for granted must be so"
                .to_owned(),
        );
    } else {
        steps.push(
            "rewrite queries/local/*.sql for your tables (each says what it must return); for a side that you do not keep, \
             write url = \"none\" in recon.toml"
                .to_owned(),
        );
    }
    if let Place::Variable(name) = place {
        steps.push(format!(
            "export {name}=…   the URL of a role that may only read (docs/databases.md has the grants that are enough)"
        ));
    }
    steps.push("read recon.toml: time_zone, mode; export STRIPE_API_KEY=rk_live_…".to_owned());
    steps.push(format!("recon{config} check   says what these tables would not hold, and what mends it"));
    steps.push(format!("recon{config} --since 2024-05-01"));
    let steps = steps.iter().enumerate().map(|(at, step)| format!("  {}. {step}", at + 1));
    std::iter::once("next:".to_owned()).chain(steps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_is_seen() {
        for url in ["postgres://shop:secret@db/shop", "mysql://a:b@h", "postgres://u@h/d?password=x"] {
            assert!(has_password(url), "{url}");
        }
        for url in
            ["postgres://shop@db/shop", "postgres://db:5432/shop", "sqlite:books.db", "mysql://a:@h/d?x=1"]
        {
            assert!(!has_password(url), "{url}");
        }
    }
}
