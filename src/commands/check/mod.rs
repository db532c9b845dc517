//! `recon check`: what would go wrong in the first night, told before it.
//!
//! Steps: the configuration with every secret · the store · each provider · the inbox and the books. The one thing to
//! get right: nothing is written anywhere, and what could not be looked at is never called ok.

pub mod faults;
pub mod fixes;
pub mod judge;
pub mod keys;
pub mod left_out;
pub mod lines;
mod provider;
mod rebuild;
mod sides;
pub mod stories;

use super::Outcome;
use crate::config::{self, EndpointSettings, FILE_NAME, Needs, Settings, Unusable};
use crate::gather::{Which, prepare};
use anyhow::{Context, Result};
use lines::{Grade, Line};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// How long a statement may take here that gives its first rows.
const STATEMENT_TIMEOUT_MAX: Duration = Duration::from_mins(1);

/// Arguments of `recon check`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckArgs {
    /// The lines as one line of JSON.
    pub json: bool,
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Outcome.
    pub outcome: Outcome,
    /// The worst line once more, for stderr, where anything must be put right or did not answer.
    pub error: Option<Unusable>,
}

/// Looks at everything that a night relies on and says how it is.
///
/// # Errors
/// When nothing can be said, as stdout is closed; whatever else is wrong is a line.
pub async fn check(config: Option<&Path>, args: CheckArgs, out: &mut (dyn Write + Send)) -> Result<Ended> {
    let mut lines = Vec::new();
    if let Some(settings) = configuration(config, &mut lines) {
        lines.extend(look(settings).await);
    }
    let text = if args.json {
        serde_json::to_string(&lines).context("write the lines as JSON")? + "\n"
    } else {
        lines::text(&lines)
    };
    out.write_all(text.as_bytes())?;
    writeln!(out, "{}", lines::last_line(&lines))?;
    Ok(Ended { outcome: lines::outcome(&lines), error: worst(&lines) })
}

/// The first of the worst lines, where it is one that ends in an exit code.
fn worst(lines: &[Line]) -> Option<Unusable> {
    let grade = lines.iter().map(|line| line.status).max().filter(|grade| *grade >= Grade::Unreachable)?;
    let mut found = lines.iter().filter(|line| line.status == grade);
    let first = found.next()?;
    let more = match found.count() {
        0 => String::new(),
        count => format!(" ({count} more like it)"),
    };
    let message = format!("{}: {}{more}", first.check, first.says);
    Some(Unusable::new(message, "the lines on stdout say what would go wrong and what puts each right"))
}

/// The settings with every secret; those that sign deliveries are needed where deliveries are taken only.
fn configuration(path: Option<&Path>, lines: &mut Vec<Line>) -> Option<Settings> {
    let shown = path.unwrap_or_else(|| Path::new(FILE_NAME)).display().to_string();
    let unusable = |error: Unusable| {
        Line::new(Grade::Failing, "configuration", error.message)
            .told("Every command ends here with exit 78, the night too. Nothing is compared.")
            .hinted(error.hint)
    };
    let all = match config::load_for(path, Needs { api_keys: true, webhook_secrets: true, target: true }) {
        Ok(settings) => {
            let says =
                format!("{shown}: every setting is understood, and every secret that it names is there");
            lines.push(Line::new(Grade::Ok, "configuration", says));
            return Some(settings);
        }
        Err(error) => error,
    };
    // What only `recon apply` needs is told apart from what only `recon serve` needs.
    let serves = Needs { api_keys: true, webhook_secrets: true, target: false };
    let is_of_target = config::load_for(path, serves).is_ok();
    match config::load(path) {
        Err(error) => {
            lines.push(unusable(error));
            None
        }
        Ok(settings) => {
            let says =
                format!("{shown}: every setting is understood, and every key that a run needs is there");
            lines.push(Line::new(Grade::Ok, "configuration", says));
            let (check, story) = if is_of_target {
                (
                    "target",
                    "A run that reports needs none of it. `recon apply` and `recon --apply` end on this machine with exit 78 \
                     before their first write.",
                )
            } else {
                (
                    "webhook_secrets",
                    "A run needs none. `recon serve` does not start on this machine, and until it does every delivery is \
                     refused.",
                )
            };
            lines.push(Line::new(Grade::Warning, check, all.message).told(story).hinted(all.hint));
            Some(settings)
        }
    }
}

async fn look(mut settings: Settings) -> Vec<Line> {
    let mut lines = Vec::new();
    let limit = settings.limits.statement_timeout.min(STATEMENT_TIMEOUT_MAX);
    settings.limits.statement_timeout = limit;
    let has_store = sides::store(&settings, &mut lines).await;
    for endpoint in &settings.endpoints {
        let provider = settings.providers.iter().find(|provider| provider.name == endpoint.name);
        match provider {
            Some(provider) => {
                lines.extend(provider::check(provider, &settings.limits, endpoint.tolerance).await);
            }
            None => lines.push(only_delivers(endpoint)),
        }
    }
    let files = prepare(&mut settings).await;
    for which in [Which::Inbox, Which::Local] {
        let (tables, check) = match which {
            Which::Inbox => (&settings.file_tables.inbox, "inbox"),
            _ => (&settings.file_tables.local, "books"),
        };
        match &files {
            Err(error) if !tables.is_empty() => lines.push(sides::failed(check, error)),
            _ => sides::side(&settings, which, has_store, &mut lines).await,
        }
    }
    lines
}

fn only_delivers(endpoint: &EndpointSettings) -> Line {
    let says = format!("{}: its lists are not read, only its deliveries are taken", endpoint.name);
    Line::new(Grade::Ok, "provider", says)
}
