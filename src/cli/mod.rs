//! The command line: arguments as typed, and what they mean once checked.
//!
//! The help texts here are the manual; `recon man` prints them as a page.

mod args;
mod findings;
mod operating;
mod refusal;
mod request;
mod window;
mod comparing;

pub use args::{ApplyArgs, CheckArgs, Cli, Command, InitArgs, RunArgs, ServeArgs, StatusArgs, WorkArgs};
pub use comparing::{CompareArgs, CompareRequest, CurrencyFrom, SideRequest};
pub use findings::{AcceptArgs, AssignArgs, CloseArgs, FindingsCommand, ListArgs, ShowArgs};
pub use operating::{ActArgs, InboxCommand, OutboxCommand, ReplayArgs, RetryArgs, ShowEventArgs};
pub use refusal::usage_error;
pub use request::RunRequest;
pub use window::{OVERLAP_US, WindowSpec, describe_window, resolve_window, stored_window, unfinished_month};

use clap::CommandFactory;
use thiserror::Error;

/// Subcommands that read no configuration, so that `--config` would change nothing.
const WITHOUT_CONFIGURATION: [&str; 5] = ["init", "completions", "man", "demo", "compare"];

impl Command {
    /// Its name where it reads no configuration.
    #[must_use]
    pub fn without_configuration(&self) -> Option<&'static str> {
        let name = match self {
            Self::Init(_) => "init",
            Self::Completions { .. } => "completions",
            Self::Man => "man",
            Self::Demo(_) => "demo",
            Self::Compare(_) => "compare",
            _ => return None,
        };
        WITHOUT_CONFIGURATION.into_iter().find(|known| *known == name)
    }
}

/// The whole command line to be shown, `--config` with the subcommands that read it. It is not to be parsed with.
#[must_use]
pub fn command() -> clap::Command {
    let mut command = Cli::command();
    // What is global reaches the subcommands only then.
    command.build();
    WITHOUT_CONFIGURATION.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |subcommand| subcommand.mut_arg("config", |config| config.hide(true)))
    })
}

/// Arguments that cannot mean anything: exit 78 as for a configuration that cannot be used, nothing done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct UsageError {
    /// What is wrong.
    pub message: String,
    /// What to write instead; empty where the message says it.
    pub hint: String,
}

impl UsageError {
    /// An error from its two texts.
    #[must_use]
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}
