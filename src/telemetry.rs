//! Logs: to stderr only, so that stdout stays data. Bodies, secrets and personal data never get here.

use tracing_subscriber::EnvFilter;

/// Starts logging. `RECON_LOG` filters (`warn` where unset; `info`, `recon=debug`), `RECON_LOG_FORMAT=json`
/// writes one JSON object a line, `NO_COLOR` takes colours away.
///
/// Calling it again changes nothing.
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
    let is_json = std::env::var("RECON_LOG_FORMAT").is_ok_and(|format| format == "json");
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(is_coloured());
    // Where in the program a line was written is for programs that search, not for people.
    let started = if is_json { builder.json().try_init() } else { builder.with_target(false).try_init() };
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
