//! The command line: arguments as typed, and what they mean once checked.
//!
//! The help texts here are the manual; `recon man` prints them as a page.

mod args;
mod findings;
mod operating;
mod request;
mod window;
mod comparing;

pub use args::{ApplyArgs, CheckArgs, Cli, Command, InitArgs, RunArgs, ServeArgs, StatusArgs, WorkArgs};
pub use comparing::{CompareArgs, CompareRequest, CurrencyFrom, SideRequest};
pub use findings::{AcceptArgs, AssignArgs, CloseArgs, FindingsCommand, ListArgs, ShowArgs};
pub use operating::{ActArgs, InboxCommand, OutboxCommand, ReplayArgs, RetryArgs};
pub use request::RunRequest;
pub use window::{OVERLAP_US, WindowSpec, describe_window, resolve_window, stored_window, unfinished_month};

use thiserror::Error;

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
