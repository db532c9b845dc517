//! The first thing that a newcomer sees: what the demonstration prints, whether the commands that it prints
//! work as they stand, and whether the practice month can be brought to `clean` by hand.
//! `RECON_BLESS=1` renews the README's picture.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// 2026-11-30T11:33:43Z, the present of the README's picture.
const NOW_S: i64 = 1_796_038_423;

fn recon(dir: &Path, now_s: i64) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
    at(&mut command, dir, now_s);
    command
}

/// A bare environment in the folder, at that time.
fn at(command: &mut Command, dir: &Path, now_s: i64) {
    command.current_dir(dir).env_clear().env("PATH", "/usr/bin:/bin").env("TMPDIR", dir);
    command.env("RECON_NOW", now_s.to_string()).stdin(Stdio::null());
}

/// A command line as it was printed, in a shell. Answers exit code and stdout.
fn paste(dir: &Path, now_s: i64, line: &str) -> (i32, String) {
    let mut command = Command::new("sh");
    at(&mut command, dir, now_s);
    let output = command.args(["-c", line]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap_or_else(|| panic!("{line}: {told}")), text + &told)
}

fn demo(dir: &Path, arguments: &[&str]) -> String {
    let output = recon(dir, NOW_S).arg("demo").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*told), (Some(0), ""), "{text}");
    text
}

/// What stands after a name at the end of the demonstration.
fn named<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("  {name:<10}")));
    line.unwrap_or_else(|| panic!("no line {name}: {text}"))
}

/// The story without what differs from one telling to the next: the port and the paths.
fn story(text: &str) -> String {
    let (story, _) = text.split_once("\n  Report ").unwrap();
    let port = named(text, "Provider").split_once(',').unwrap().0;
    story.replace(port, "http://127.0.0.1:33949")
}

#[test]
fn the_commands_at_the_end_are_whole_and_tell_the_same_story_again() {
    let dir = tempfile::tempdir().unwrap();
    let text = demo(dir.path(), &["--seed", "31", "--events", "500"]);
    assert!(!text.contains('\u{1b}') && !text.contains('✗'), "{text}");
    assert!(story(&text).lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(Path::new(named(&text, "Report")).join("findings.csv").exists(), "{text}");
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 1, "only the report stays");

    let (code, again) = paste(dir.path(), NOW_S, named(&text, "Again"));
    assert_eq!((code, story(&again)), (0, story(&text)));
    let (code, kept) = paste(dir.path(), NOW_S, named(&text, "Keep"));
    assert_eq!((code, story(&kept)), (0, story(&text)));
    assert!(named(&kept, "Again").ends_with("demo --seed 31 --events 500 --keep demo"), "{kept}");
    let (code, offline) = paste(dir.path(), NOW_S, named(&kept, "Offline"));
    assert_eq!(code, 1, "{offline}");
    let (_, ending) = kept.split_once("What is left").unwrap();
    let left = ending.lines().filter(|line| line.contains("for a person"));
    let left: usize =
        left.map(|line| line.split_whitespace().rev().nth(1).unwrap().parse::<usize>().unwrap()).sum();
    assert!(offline.contains(&format!("outcome=findings findings={left} ")), "{left}: {offline}");
}

/// A demonstration that is the provider until it is told to stop.
struct Practice {
    child: Child,
    text: String,
    rest: BufReader<std::process::ChildStdout>,
}

impl Practice {
    fn begin(dir: &Path) -> Self {
        let mut command = recon(dir, NOW_S);
        command.args(["demo", "--practice", "--seed", "5", "--events", "400"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut rest = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while !text.contains("Ctrl-C") {
            assert_ne!(rest.read_line(&mut text).unwrap(), 0, "it ended: {text}");
        }
        Self { child, text, rest }
    }

    /// The commands that it says to type in another terminal.
    fn commands(&self) -> Vec<&str> {
        let (_, after) = self.text.split_once("In another terminal\n").unwrap();
        after.lines().take_while(|line| !line.is_empty()).map(str::trim).collect()
    }

    /// Ctrl-C. Answers its exit code and its last words.
    fn end(mut self) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let mut words = String::new();
        while self.rest.read_line(&mut words).unwrap() > 0 {}
        (self.child.wait().unwrap().code(), words)
    }
}

impl Drop for Practice {
    fn drop(&mut self) {
        // It has ended already where the test came to its end.
        self.child.kill().ok();
    }
}

/// The command after these words in a run's `Next`.
fn next<'a>(summary: &'a str, words: &str) -> &'a str {
    let line = summary.lines().find_map(|line| line.split_once(words));
    line.unwrap_or_else(|| panic!("no `{words}`: {summary}")).1
}

#[test]
fn a_newcomer_runs_reviews_applies_and_comes_to_clean() {
    let dir = tempfile::tempdir().unwrap();
    let practice = Practice::begin(dir.path());
    let look = practice.commands().join(" && ");
    assert_eq!(practice.commands().len(), 2, "{}", practice.text);
    assert!(
        practice.text.lines().filter(|line| !line.starts_with("    ")).all(|line| line.chars().count() <= 80)
    );

    let (code, summary) = paste(dir.path(), NOW_S + 60, &look);
    assert_eq!(code, 1, "{summary}");
    let plan = dir.path().join(next(&summary, ". read ").split(" and delete").next().unwrap());
    let rows = std::fs::read_to_string(&plan).unwrap();
    let kept: Vec<&str> = rows.lines().enumerate().filter(|(at, _)| *at != 1).map(|(_, row)| row).collect();
    std::fs::write(&plan, kept.join("\n") + "\n").unwrap();
    let (code, applied) = paste(dir.path(), NOW_S + 120, next(&summary, "carry out the rest: "));
    assert_eq!(code, 0, "{applied}");
    assert!(applied.contains(&format!(" applied={} ", kept.len() - 1)), "{applied}");

    let (code, summary) = paste(dir.path(), NOW_S + 180, next(&summary, ". check: "));
    assert_eq!(code, 1, "{summary}");
    assert!(summary.contains("the plan has 1 correction"), "{summary}");
    let (code, applied) = paste(dir.path(), NOW_S + 240, next(&summary, "carry out the rest: "));
    assert_eq!(code, 0, "{applied}");

    // Soon, and for somebody who goes on the day after tomorrow.
    for seconds in [300, 2 * 86_400] {
        let (code, summary) = paste(dir.path(), NOW_S + seconds, &look);
        assert_eq!(code, 0, "after {seconds} s: {summary}");
        assert!(summary.contains("outcome=clean findings=0"), "{summary}");
    }
    let (code, words) = practice.end();
    assert_eq!(code, Some(0));
    assert!(words.contains("The provider is gone"), "{words}");
    let (code, summary) = paste(dir.path(), NOW_S + 2 * 86_400, &format!("{look} --offline"));
    assert_eq!(code, 0, "{summary}");
}

#[test]
fn a_folder_to_keep_and_one_to_practise_in_exclude_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let output = recon(dir.path(), NOW_S).args(["demo", "--keep", "a", "--practice", "b"]).output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// The README's picture of a demonstration: the first fault of each kind, and how many are left out.
fn picture(text: &str) -> String {
    let shown = story(text);
    let (opening, rest) = shown.split_once("\n  ───").unwrap();
    let mut blocks = rest.split("\n  ───");
    let (loud, _quiet, rest) = (blocks.next().unwrap(), blocks.next().unwrap(), blocks.collect::<Vec<_>>());
    let rule = format!("  ───{}", loud.lines().next().unwrap());
    let mut kinds = Vec::new();
    let (mut lines, mut left_out) = (vec![opening.to_owned(), rule], 0);
    for line in loud.lines().skip(1) {
        let kind = line.split_whitespace().rev().nth(3).unwrap();
        if kinds.contains(&kind) {
            left_out += 1;
        } else {
            kinds.push(kind);
            lines.push(line.to_owned());
        }
    }
    lines.push(format!("  … and {left_out} more kinds of fault; then the scenes that must not be found"));
    lines.extend(rest.iter().map(|block| format!("  ───{block}")));
    let text = lines.join("\n");
    let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    lines.join("\n").trim().to_owned()
}

/// The README shows what its own first command prints.
#[test]
fn the_readme_shows_what_its_command_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let line = readme.lines().find_map(|line| line.strip_prefix("cargo run --release -- demo ")).unwrap();
    let arguments: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
    let dir = tempfile::tempdir().unwrap();
    let picture = picture(&demo(dir.path(), &arguments));
    let start = readme.find("```text\nrecon demo").unwrap() + "```text\n".len();
    let end = start + readme[start..].find("\n```").unwrap();
    if std::env::var_os("RECON_BLESS").is_some() {
        std::fs::write(&path, format!("{}{picture}{}", &readme[..start], &readme[end..])).unwrap();
        return;
    }
    assert_eq!(&readme[start..end], picture, "the README's picture is out of date; RECON_BLESS=1 renews it");
}

/// Every link from one page to another leads somewhere, and every heading that it names is there.
#[test]
fn links_between_pages_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = Vec::new();
    for folder in ["", "docs", "reports", "cron", "queries/rules"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    assert!(pages.len() > 15, "{pages:?}");
    let heading = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>()
    };
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.contains(' ') {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                let found = text.lines().any(|line| line.starts_with('#') && heading(line) == anchor);
                assert!(found, "{}: {link}: no such heading", page.display());
            }
        }
    }
}
