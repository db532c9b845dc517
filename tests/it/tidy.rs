//! Keeps what `docs/ARCHITECTURE.md` promises: lengths, the purity of the core, the form of statements,
//! and scheduler lines that our own command line accepts.

use clap::Parser;
use recon::cli::Cli;
use std::path::{Path, PathBuf};

/// A little above the aim of 400, for a file that has just grown past it.
const FILE_LINES_MAX: usize = 450;

/// Folders and files that do no IO, read no clock, draw no random number and are not async.
const PURE: [&str; 36] = [
    "src/record/",
    "src/provider/stripe/",
    "src/provider/chain.rs",
    "src/provider/coverage.rs",
    "src/provider/list_page.rs",
    "src/provider/sightings.rs",
    "src/provider/wait.rs",
    "src/compare/",
    "src/findings/",
    "src/correction/",
    "src/report/",
    "src/proposal/",
    "src/receive/",
    "src/cli/window.rs",
    "src/gather/statement.rs",
    "src/gather/target_statement.rs",
    "src/apply/payment.rs",
    "src/work/decide.rs",
    "src/work/read.rs",
    "src/files/money.rs",
    "src/files/side.rs",
    "src/files/csv_rows.rs",
    "src/files/json_rows.rs",
    "src/files/layout.rs",
    "src/gather/table.rs",
    "src/gather/made_by.rs",
    "src/commands/check/faults.rs",
    "src/commands/check/fixes.rs",
    "src/commands/check/judge.rs",
    "src/commands/check/keys.rs",
    "src/commands/check/lines.rs",
    "src/commands/check/rebuild.rs",
    "src/commands/check/stories.rs",
    "src/night/found.rs",
    "src/night/text.rs",
    "src/night/metrics.rs",
];
/// The files in them that are the shell.
const IMPURE: [&str; 1] = ["src/report/write.rs"];
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

/// Whether a file holds only tests, or what they compare with.
fn is_test_file(name: &str) -> bool {
    name.ends_with("tests.rs")
        || name.contains("/tests/")
        || ["src/compare/reference.rs", "src/compare/judged.rs"].contains(&name)
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
    let lines: Vec<&str> = text.lines().collect();
    let is_start = |at: &usize| {
        lines[*at].trim() == "#[cfg(test)]"
            && lines.get(at + 1).is_some_and(|next| next.trim() == "mod tests {")
    };
    let end = (0..lines.len()).find(is_start).unwrap_or(lines.len());
    let numbered = lines.into_iter().take(end).enumerate().map(|(at, line)| (at + 1, line));
    numbered.filter(|(_, line)| !line.trim_start().starts_with("//"))
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
        let is_pure = PURE.iter().any(|pure| name.starts_with(pure))
            && !IMPURE.contains(&name.as_str())
            && !is_test_file(&name);
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
    for (name, text) in files("src", "rs").into_iter().filter(|(name, _)| !is_test_file(name)) {
        for (at, line) in code(&text) {
            let is_compile_time = line.trim_start().starts_with("const ");
            if is_compile_time {
                continue;
            }
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

/// The modules of `src/lib.rs`, in the order in which data flows.
fn modules() -> Vec<String> {
    let map = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let names = map.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

#[test]
fn a_module_uses_only_what_stands_before_it() {
    // Arguments of one subcommand stand with the subcommand, and the command line is made of them.
    const EXCEPTIONS: [(&str, &str); 1] = [("cli", "commands")];
    let modules = modules();
    assert!(modules.len() > 10, "{modules:?}");
    let place = |name: &str| modules.iter().position(|module| module == name);
    let mut wrong = Vec::new();
    for (name, text) in files("src", "rs").iter().filter(|(name, _)| !name.contains("tests")) {
        let path = name.trim_start_matches("src/").trim_end_matches(".rs");
        let own = path.split('/').next().unwrap();
        let Some(own_place) = place(own) else { continue };
        for (at, line) in code(text) {
            for used in line.split("crate::").skip(1) {
                let used = used.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap();
                let is_later = place(used).is_some_and(|used_place| used_place > own_place);
                if is_later && !EXCEPTIONS.contains(&(own, used)) {
                    wrong.push(format!("{name}:{at}: `{own}` uses `{used}`, which stands after it"));
                }
            }
        }
    }
    nothing(&wrong);
}

#[test]
fn nothing_writes_to_a_provider_and_only_the_client_speaks_http() {
    const WRITES: [&str; 9] = [
        ".post(",
        ".put(",
        ".patch(",
        ".delete(",
        "Method::POST",
        "Method::PUT",
        "Method::PATCH",
        "Method::DELETE",
        ".request(",
    ];
    // The client, the reader of its answers, and whoever fetches PayPal's certificate; and the one file that posts to
    // the team's own URLs, which is never given a provider's.
    const HTTP: [&str; 4] =
        ["src/provider/client.rs", "src/provider/answer.rs", "src/serve/certificate.rs", OWN_URLS];
    const OWN_URLS: &str = "src/work/call.rs";
    let mut wrong = Vec::new();
    for (name, text) in files("src", "rs").iter().filter(|(name, _)| !name.starts_with("src/demo/")) {
        for (at, line) in code(text) {
            let is_named = name == OWN_URLS
                && [".post(&self.url)", ".put(&self.url)"].iter().any(|call| line.contains(call));
            let is_user = ["src/work/", "src/night/"].iter().any(|folder| name.starts_with(folder))
                || ["src/commands/replay.rs", "src/commands/apply/post.rs"].contains(&name.as_str());
            let uses_it = is_user && ["caller.post(&", "caller.put("].iter().any(|call| line.contains(call));
            if WRITES.iter().any(|write| line.contains(write)) && !is_named && !uses_it {
                wrong.push(format!("{name}:{at}: {}", line.trim()));
            }
            if line.contains("reqwest::") && !HTTP.contains(&name.as_str()) {
                wrong.push(format!("{name}:{at}: only the client speaks HTTP"));
            }
        }
    }
    nothing(&wrong);
}

#[test]
fn entries_are_only_ever_added() {
    const INSERT_ONLY: [&str; 7] = [
        "ledger_entry",
        "applied_event",
        "correction",
        "inbox_action",
        "outbox_action",
        "finding_action",
        "correction_actor",
    ];
    let mut wrong = Vec::new();
    for (name, text) in files("queries", "sql") {
        let statement: String =
            text.lines().filter(|line| !line.trim_start().starts_with("--")).collect::<Vec<_>>().join("\n");
        for table in INSERT_ONLY {
            let is_into = statement.contains(&format!("insert into {table} "));
            let changes =
                [format!("update {table} "), format!("update {table}\n"), format!("delete from {table}")];
            if changes.iter().any(|change| statement.contains(change.as_str()))
                || (is_into && statement.contains("do update"))
            {
                wrong.push(format!("{name} changes rows of {table}"));
            }
        }
    }
    nothing(&wrong);
}

#[test]
fn business_state_is_written_behind_the_door_only() {
    // (what writes, who may call it)
    const WRITERS: [(&str, &[&str]); 3] = [
        ("insert_entries(", &["src/store/ledger.rs", "src/apply.rs"]),
        ("states::set_state(", &["src/commands/apply/carry_out.rs"]),
        ("states::set_states(", &["src/work/book.rs"]),
    ];
    let mut wrong = Vec::new();
    for (name, text) in files("src", "rs") {
        for (at, line) in code(&text) {
            for (writer, callers) in WRITERS {
                if line.contains(writer) && !callers.contains(&name.as_str()) {
                    wrong.push(format!("{name}:{at}: {}", line.trim()));
                }
            }
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
            (is_word && start < end).then(|| line[start..end].trim().trim_end_matches(')').to_owned())
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
