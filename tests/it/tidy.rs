//! Keeps what `docs/ARCHITECTURE.md` promises: lengths, the purity of the core, the form of statements,
//! and scheduler lines that our own command line accepts.

use clap::Parser;
use recon::cli::Cli;
use std::path::{Path, PathBuf};

/// A little above the aim of 400, for a file that has just grown past it.
const FILE_LINES_MAX: usize = 450;

/// Folders and files that do no IO, read no clock, draw no random number and are not async.
const PURE: [&str; 8] = [
    "src/record/",
    "src/provider/stripe",
    "src/compare/",
    "src/findings/",
    "src/correction/",
    "src/report/",
    "src/cli/window.rs",
    "src/gather/statement.rs",
];
/// The files in them that are the shell.
const IMPURE: [&str; 2] = ["src/compare/spill.rs", "src/report/write.rs"];
const IMPURE_WORDS: [&str; 11] = [
    "async ",
    ".await",
    "tokio",
    "sqlx",
    "reqwest",
    "std::fs",
    "std::net",
    "std::env",
    "SystemTime",
    "Instant::now",
    "rand::",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below `folder` whose name ends in `end`, with their paths from the repository's root.
fn files(folder: &str, end: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == end) {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<(String, String)> {
    ["src", "tests", "benches"].into_iter().flat_map(|folder| files(folder, "rs")).collect()
}

/// The part of a source file before its unit tests, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let before_tests = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = before_tests.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[track_caller]
fn nothing(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn there_is_something_to_keep_tidy() {
    assert!(sources().len() > 20);
    assert!(files("queries", "sql").len() >= 4);
}

#[test]
fn every_file_says_its_job_and_fits_a_sitting() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        if !text.starts_with("//! ") {
            wrong.push(format!("{name} does not open with `//!`"));
        }
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            wrong.push(format!("{name} has {lines} lines, more than {FILE_LINES_MAX}"));
        }
    }
    nothing(&wrong);
}

#[test]
fn the_core_is_pure() {
    let mut wrong = Vec::new();
    for (name, text) in files("src", "rs") {
        let is_pure = PURE.iter().any(|pure| name.starts_with(pure)) && !IMPURE.contains(&name.as_str());
        for (at, line) in code(&text).filter(|_| is_pure) {
            for word in IMPURE_WORDS {
                if line.contains(word) {
                    wrong.push(format!("{name}:{at}: a pure file has `{word}`"));
                }
            }
        }
    }
    nothing(&wrong);
}

#[test]
fn nothing_unwraps_outside_of_tests() {
    let mut wrong = Vec::new();
    for (name, text) in files("src", "rs") {
        for (at, line) in code(&text) {
            if line.contains(".unwrap()") || line.contains(".expect(\"") {
                wrong.push(format!("{name}:{at}: {}", line.trim()));
            }
        }
    }
    nothing(&wrong);
}

#[test]
fn only_the_clock_reads_the_clock() {
    let mut wrong = Vec::new();
    for (name, text) in files("src", "rs") {
        for (at, line) in code(&text) {
            if name != "src/clock.rs" && (line.contains("SystemTime::now") || line.contains("Utc::now")) {
                wrong.push(format!("{name}:{at}: {}", line.trim()));
            }
        }
    }
    nothing(&wrong);
}

#[test]
fn statements_are_commented_lower_case_and_every_write_answers() {
    const KEYWORDS: [&str; 9] =
        ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "FROM ", "WHERE ", "VALUES", "RETURNING", " AND "];
    let mut wrong = Vec::new();
    for (name, text) in files("queries", "sql") {
        if !text.starts_with("-- ") {
            wrong.push(format!("{name} does not open with a comment"));
        }
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
        let statement = lines.collect::<Vec<_>>().join("\n");
        for keyword in KEYWORDS.into_iter().filter(|keyword| statement.contains(keyword)) {
            wrong.push(format!("{name}: `{}` is not lower case", keyword.trim()));
        }
        let is_write = ["insert into ", "update ", "delete from "].iter().any(|write| {
            statement.trim_start().starts_with(write) || statement.contains(&format!("\n{write}"))
        });
        if is_write && !statement.contains("returning") {
            wrong.push(format!("{name} writes and returns nothing"));
        }
    }
    nothing(&wrong);
}

/// The `recon …` commands in a scheduler's file, up to what the shell does with their result.
fn commands(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let start = line.find("recon ")?;
            let is_word = start == 0 || line[..start].ends_with([' ', '/']);
            let end =
                line.find("||").or_else(|| line.find(">>")).or_else(|| line.find('>')).unwrap_or(line.len());
            (is_word && start < end).then(|| line[start..end].trim().to_owned())
        })
        .collect()
}

#[test]
fn scheduler_lines_are_accepted_by_our_command_line() {
    let crontab = std::fs::read_to_string(root().join("cron/crontab")).unwrap();
    let found = commands(&crontab);
    assert!(found.len() >= 3, "{found:?}");
    for command in found {
        // `\%` is how a crontab writes a percent sign; `$(…)` stands for a month here.
        let words = command.replace("\"$(date -d \"2 days ago\" +\\%Y-\\%m)\"", "2026-01");
        if let Err(error) = Cli::try_parse_from(words.split_whitespace()) {
            panic!("{command}: {error}");
        }
    }
}

#[test]
fn crontab_lines_have_five_fields_and_a_known_program() {
    let crontab = std::fs::read_to_string(root().join("cron/crontab")).unwrap();
    for line in crontab.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        if line.split_whitespace().next().is_some_and(|word| word.contains('=')) {
            continue;
        }
        let fields: Vec<&str> = line.split_whitespace().take(5).collect();
        let is_time =
            |field: &&str| field.bytes().all(|byte| byte.is_ascii_digit() || b"*/,-".contains(&byte));
        assert!(fields.len() == 5 && fields.iter().all(is_time), "{line}");
        assert!(line.contains("/usr/local/bin/recon "), "{line}");
    }
}
