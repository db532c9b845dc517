//! Golden output of the command line: each file in `tests/cases/cli/` is one command with its exit code,
//! stdout and stderr. A new case is a new file; `UPDATE_GOLDEN=1` writes what the command answers now.
//!
//! Every command runs as cron would run it, in a bare environment, and once in each of three host time
//! zones, which must change nothing (C51, C80).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// 2026-02-10T12:00:00Z.
const NOW: &str = "1770724800";
const HOST_ZONES: [&str; 3] = ["UTC", "Asia/Tokyo", "America/Los_Angeles"];

const CONFIGURATION: &str = "\
[report]
time_zone = \"America/Sao_Paulo\"
[[provider]]
name = \"stripe\"
api_key = { env = \"KEY\" }
";

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/cli");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    cases.sort();
    cases
}

/// Runs the command line after `$ `, such as `KEY=x recon --month 2026-13`, and writes down what it does.
fn run(case: &Path, line: &str, host_zone: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let own = case.with_extension("toml");
    match std::fs::read_to_string(own) {
        Ok(text) if text.is_empty() => {}
        Ok(text) => std::fs::write(dir.path().join("recon.toml"), text).unwrap(),
        Err(_) => std::fs::write(dir.path().join("recon.toml"), CONFIGURATION).unwrap(),
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let program = words.iter().position(|word| *word == "recon").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
    command.current_dir(dir.path()).env_clear().env("RECON_NOW", NOW).env("TZ", host_zone);
    for pair in &words[..program] {
        let (name, value) = pair.split_once('=').unwrap();
        command.env(name, value);
    }
    let output = command.args(&words[program + 1..]).output().unwrap();
    let text = |bytes: Vec<u8>| {
        let here = dir.path().canonicalize().unwrap();
        String::from_utf8(bytes).unwrap().replace(here.to_str().unwrap(), "$DIR")
    };
    format!(
        "$ {line}\nexit {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr)
    )
}

#[test]
fn every_command_answers_as_written_down() {
    let mut wrong = Vec::new();
    for case in cases() {
        let expected = std::fs::read_to_string(&case).unwrap();
        let line = expected.lines().next().and_then(|line| line.strip_prefix("$ ")).unwrap_or_default();
        for zone in HOST_ZONES {
            let found = run(&case, line, zone);
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                std::fs::write(&case, &found).unwrap();
            } else if found != expected {
                wrong.push(format!("{} with TZ={zone}:\n{found}", case.display()));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_last_line_of_a_refusal_is_its_outcome() {
    for case in cases() {
        let text = std::fs::read_to_string(&case).unwrap();
        let exit = text.lines().nth(1).unwrap();
        let outcome = match exit {
            // A store that is not there yet; whatever else is asked here cannot be helped by asking again.
            "exit 2" => "outcome=incomplete findings=0",
            "exit 78" => "outcome=config findings=0",
            _ => continue,
        };
        let (stdout, stderr) = text.split_once("--- stderr\n").unwrap();
        // `recon check` counts its lines behind it.
        let last = stdout.lines().last().unwrap_or_default();
        let is_said = last == outcome || last.starts_with(&format!("{outcome} ok="));
        assert!(is_said, "{}: {last}", case.display());
        let errors = stderr.lines().filter(|line| line.starts_with("error: ")).count();
        assert_eq!(errors, 1, "{}", case.display());
    }
}

#[test]
fn init_writes_once_and_never_over() {
    let dir = tempfile::tempdir().unwrap();
    let init = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        let output = command.current_dir(dir.path()).env_clear().args(["init", "ops"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(init().lines().filter(|line| line.starts_with("wrote ")).count(), 5);
    let file = dir.path().join("ops/recon.toml");
    std::fs::write(&file, "# mine").unwrap();
    assert_eq!(init().lines().filter(|line| line.starts_with("kept ")).count(), 5);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine");
}

#[test]
fn a_demonstration_writes_over_nobody_elses_files() {
    for name in ["recon.toml", "recon.db", "stripe.key"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        std::fs::write(&file, "# mine").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        let output =
            command.current_dir(dir.path()).env_clear().args(["demo", "--keep", "."]).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(78), "{name}: {told}");
        assert!(told.contains(name) && told.contains("hint: "), "{told}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "{name}");
    }
}

/// A key that can move money is told once, without a character of it.
#[test]
fn a_secret_key_is_told_that_a_restricted_one_is_enough() {
    for (key, told) in [("sk_live_abcdef", 1), ("rk_live_abcdef", 0)] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("recon.toml"), CONFIGURATION).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.current_dir(dir.path()).env_clear().env("RECON_NOW", NOW).env("KEY", key);
        // A window of the future ends it before anybody is asked.
        let output = command.args(["--month", "2026-03"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr.matches("a restricted key (rk_…) that reads is enough").count(), told, "{stderr}");
        assert!(!stderr.contains("abcdef"), "{stderr}");
    }
}

#[test]
fn completions_and_the_manual_are_generated() {
    for (arguments, mark) in [
        (["completions", "bash"].as_slice(), "_recon()"),
        (&["completions", "zsh"], "#compdef recon"),
        (&["completions", "fish"], "complete -c recon"),
        (&["man"], ".TH recon 1"),
        (&["man"], "\n.SH \"COMMAND INBOX SHOW\"\n"),
        (&["man"], "\n.nf\n  0   everything ties out\n  1   findings\n"),
        (&["man"], ".SH \"ENVIRONMENT\"\n.nf\n  RECON_LOG "),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_recon")).env_clear().args(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap().replace("\\-", "-");
        assert!(text.contains(mark) && text.contains("max-age") && output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn an_argument_that_is_no_text_is_refused_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let strange = OsStr::from_bytes(b"caf\xe9");
    for words in [vec![OsStr::new("inbox"), strange], vec![OsStr::new("--config"), strange]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        let output = command.current_dir(dir.path()).env_clear().args(&words).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains("\nhint: "), "{stderr}");
    }
}
