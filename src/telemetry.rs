//! Logs: to stderr only, so that stdout stays data. Bodies, secrets and personal data never get here.
//!
//! The one thing to get right: where JSON is asked for, every line on stderr is one object with the run's id, what ends
//! the program included.

use crate::clock;
use crate::record::{SECOND_US, format_instant};
use serde::Serialize;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use tracing_subscriber::EnvFilter;

/// The id of what this process does now, and whether a run has it already.
static NAMED: Mutex<(String, bool)> = Mutex::new((String::new(), false));

/// Starts logging. `RECON_LOG` filters (`warn` where unset; `info`, `recon=debug`), `RECON_LOG_FORMAT=json`
/// writes one JSON object a line, `NO_COLOR` takes colours away.
///
/// Every object has the run's id. Calling it again changes nothing.
pub fn start() {
    // A filter that cannot be read must not stop a nightly job; it falls back to warnings.
    let filter = std::env::var("RECON_LOG")
        .ok()
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| EnvFilter::new("warn"));
    // The database layer logs statements with what a team wrote into them, and failures that are
    // returned to us and told once by us.
    let filter = match "sqlx=off".parse() {
        Ok(quiet) => filter.add_directive(quiet),
        Err(_) => filter,
    };
    let is_json = is_json();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(is_coloured());
    // Where in the program a line was written is for programs that search, not for people.
    let started = if is_json {
        tell_of_panics();
        builder.json().with_writer(Lines::default).try_init()
    } else {
        builder.with_target(false).try_init()
    };
    if started.is_err() {
        tracing::debug!("logging had already been started");
    }
}

/// Whether stderr may be coloured: a terminal, and `NO_COLOR` unset or empty (<https://no-color.org>).
#[must_use]
pub fn is_coloured() -> bool {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    wanted && std::io::IsTerminal::is_terminal(&std::io::stderr())
}

/// Whether each line of stderr is to be a JSON object.
#[must_use]
pub fn is_json() -> bool {
    std::env::var("RECON_LOG_FORMAT").is_ok_and(|format| format == "json")
}

/// An id for one more run: sortable by the run's time, and unique, as the machine's own microseconds and the process
/// stand in it. The first one of a process is that of all its lines so far.
#[must_use]
pub fn run_id(now_us: i64) -> String {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    if named.0.is_empty() || named.1 {
        named.0 = new_id(now_us);
    }
    named.1 = true;
    named.0.clone()
}

/// The id of what this process does now: the latest run's, or one of its own where it has not begun a run.
#[must_use]
pub fn current_run_id() -> String {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    if named.0.is_empty() {
        named.0 = new_id(clock::now_us());
    }
    named.0.clone()
}

fn new_id(now_us: i64) -> String {
    let at = format_instant(now_us - now_us.rem_euclid(SECOND_US), chrono_tz::Tz::UTC);
    let digits: String = at.chars().take(19).filter(char::is_ascii_alphanumeric).collect();
    let micros = clock::machine_now_us().rem_euclid(1_000 * SECOND_US);
    format!("{digits}Z-{micros:09}-{}", std::process::id())
}

/// Says something on stderr that is no matter of a log level.
pub fn say(text: &str) {
    let line = if is_json() { json_line("INFO", text, "") } else { format!("{text}\n") };
    // Nobody is left to tell when stderr is closed.
    drop(std::io::stderr().write_all(line.as_bytes()));
}

/// An error with its causes on one line. Some repeat what they were caused by; that is said once.
#[must_use]
pub fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    one_line(&text)
}

/// Line breaks and runs of spaces as one space.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What ends a command: a line and a hint, or one line of JSON.
#[must_use]
pub fn error_text(message: &str, hint: &str) -> String {
    match (is_json(), hint) {
        (true, _) => json_line("ERROR", message, hint),
        (false, "") => format!("error: {message}\n"),
        (false, _) => format!("error: {message}\nhint: {hint}\n"),
    }
}

/// One line of JSON, as the log writes them.
fn json_line(level: &'static str, message: &str, hint: &str) -> String {
    #[derive(Serialize)]
    struct Fields<'a> {
        message: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        hint: &'a str,
    }
    #[derive(Serialize)]
    struct Line<'a> {
        run_id: &'a str,
        timestamp: String,
        level: &'static str,
        fields: Fields<'a>,
        target: &'static str,
    }
    let timestamp = format_instant(clock::machine_now_us(), chrono_tz::Tz::UTC);
    let fields = Fields { message, hint };
    let line = Line { run_id: &current_run_id(), timestamp, level, fields, target: "recon" };
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

/// A fault of the program is one line, too.
fn tell_of_panics() {
    std::panic::set_hook(Box::new(|panic| say_panic(&panic.to_string())));
}

fn say_panic(text: &str) {
    let line = json_line("ERROR", text, "this is a fault of recon");
    drop(std::io::stderr().write_all(line.as_bytes()));
}

/// Puts the run's id into each object. The log writes one whole line at a time.
#[derive(Default)]
struct Lines;

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mut out = Vec::with_capacity(line.len() + 64);
        match line.strip_prefix(b"{") {
            // The id holds digits, letters and dashes only.
            Some(rest) => {
                out.extend_from_slice(format!("{{\"run_id\":\"{}\",", current_run_id()).as_bytes());
                out.extend_from_slice(rest);
            }
            None => out.extend_from_slice(line),
        }
        std::io::stderr().write_all(&out)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_that_repeats_is_said_once() {
        let cause = sqlx::Error::Io(std::io::Error::other("refused"));
        let error = Err::<(), _>(cause).context("open the store x").unwrap_err();
        assert_eq!(told(&error), "open the store x: error communicating with database: refused");
    }
}
