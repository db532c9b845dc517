//! Arguments of the commands that operate the inbox and the outbox, for clap.

use crate::record::InboxStatus;
use crate::store::sent::MessageStatus;
use clap::{Args, Subcommand};

/// Subcommands of `recon inbox`.
#[derive(Clone, Debug, Subcommand)]
pub enum InboxCommand {
    /// List events, last received first.
    List {
        /// Only these: received, applied, superseded, ignored, parked or dead.
        #[arg(long, value_name = "STATUS", value_parser = status)]
        status: Option<InboxStatus>,
        /// How many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// List dead letters: what is not tried again without a person.
    Dead {
        /// How many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Show what is known of an event, and what was done to it.
    Show {
        /// The event's id, or provider/account/mode/id.
        #[arg(value_name = "EVENT")]
        event: String,
        /// Its bytes as received, which hold personal data, and nothing else.
        #[arg(long)]
        body: bool,
    },
    /// Try events again that gave up or wait, with new attempts.
    Retry(ActArgs),
    /// End events that are not to be applied.
    Discard(ActArgs),
}

/// Arguments of what changes events.
#[derive(Clone, Debug, Args)]
pub struct ActArgs {
    /// Event ids, or provider/account/mode/id.
    #[arg(value_name = "EVENT", required = true)]
    pub events: Vec<String>,
    /// Why; kept with your user name.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// Subcommands of `recon outbox`.
#[derive(Clone, Debug, Subcommand)]
pub enum OutboxCommand {
    /// List messages, last written first.
    List {
        /// Only these: waiting, sent, suppressed or dead.
        #[arg(long, value_name = "STATUS", value_parser = message_status)]
        status: Option<MessageStatus>,
        /// How many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Show what is known of a message, and what was done to it; never its body.
    Show {
        /// Its idempotency key, such as `stripe//live/credit:ch_1`.
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Send messages after all that were given up, with new attempts and the same key.
    Retry(RetryArgs),
}

/// Arguments of `recon outbox retry`.
#[derive(Clone, Debug, Args)]
pub struct RetryArgs {
    /// Idempotency keys, such as `stripe//live/credit:ch_1`.
    #[arg(value_name = "KEY", required = true)]
    pub keys: Vec<String>,
    /// Why; kept with your user name.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// Arguments of `recon replay`.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    /// Event ids, or provider/account/mode/id.
    #[arg(value_name = "EVENT")]
    pub events: Vec<String>,
    /// Instead of events: all that have ended and were received from this day or instant on.
    #[arg(long, value_name = "DATE", requires = "until", conflicts_with = "events")]
    pub since: Option<String>,
    /// The last day, whole, or the instant before which they were received.
    #[arg(long, value_name = "DATE", requires = "since")]
    pub until: Option<String>,
    /// Why; kept with your user name.
    #[arg(long, value_name = "TEXT", required_unless_present = "to")]
    pub reason: Option<String>,
    /// Send the events to this URL of your own, freshly signed, and apply nothing here.
    #[arg(long, value_name = "URL", requires = "events")]
    pub to: Option<String>,
    /// How often.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "to", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub times: u32,
}

fn message_status(text: &str) -> Result<MessageStatus, String> {
    let words = || MessageStatus::ALL.map(MessageStatus::as_str).join(", ");
    let found = MessageStatus::ALL.into_iter().find(|status| status.as_str() == text);
    found.ok_or_else(|| format!("must be one of {}", words()))
}

fn status(text: &str) -> Result<InboxStatus, String> {
    let words = || InboxStatus::ALL.map(InboxStatus::as_str).join(", ");
    text.parse().map_err(|()| format!("must be one of {}", words()))
}
