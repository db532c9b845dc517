//! Arguments of the commands that operate the inbox and the outbox, for clap.

use crate::record::InboxStatus;
use crate::store::sent::MessageStatus;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Subcommands of `recon inbox`.
#[derive(Clone, Debug, Subcommand)]
pub enum InboxCommand {
    /// List events, last received first.
    List {
        /// Only these: received, applied, superseded, ignored, parked or dead.
        #[arg(long, value_name = "STATUS", value_parser = status)]
        status: Option<InboxStatus>,
        /// How many at most; it is said where there are more.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit)]
        limit: u32,
    },
    /// List dead letters, last received first: what is not tried again without a person.
    Dead {
        /// How many at most; it is said where there are more.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit)]
        limit: u32,
    },
    /// Show what is known of an event, and what was done to it
    ///
    /// Bytes hold personal data: they are given only where --body or --save asks for them.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  recon inbox show evt_1\n  recon inbox show evt_1 --save evt_1.json\n  recon inbox show evt_1 --other 1a2b3c4d --save other.json"
    )]
    Show(ShowEventArgs),
    /// Give events new attempts that gave up (dead), wait (received) or are parked; the others are left.
    Retry(ActArgs),
    /// End events that are not to be applied: dead, waiting or parked ones become ignored.
    Discard(ActArgs),
}

/// Arguments of `recon inbox show`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ShowEventArgs {
    /// The event's id, or provider/account/mode/id where several accounts have it.
    #[arg(value_name = "EVENT")]
    pub event: String,
    /// Print its bytes as received, and nothing else.
    #[arg(long)]
    pub body: bool,
    /// Write its bytes as received to a new file that only you can read; nothing is written over.
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    pub save: Option<PathBuf>,
    /// With --body or --save: other bytes that came under the same id, by the first eight digits of their hash or more.
    #[arg(long, value_name = "HASH")]
    pub other: Option<String>,
}

/// Arguments of what changes events.
#[derive(Clone, Debug, Args)]
pub struct ActArgs {
    /// Event ids, or provider/account/mode/id where several accounts have one.
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
        /// How many at most; it is said where there are more.
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit)]
        limit: u32,
    },
    /// Show what is known of a message, and what was done to it; never its body.
    Show {
        /// Its idempotency key, such as `stripe//live/credit:ch_1`.
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Have messages sent after all that were given up (dead), with new attempts and the same key.
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
    /// Event ids, or provider/account/mode/id where several accounts have one.
    #[arg(value_name = "EVENT")]
    pub events: Vec<String>,
    /// Instead of events: those first received from this day or instant on that were applied, superseded or ignored. Dead letters, what a person discarded and what has no bytes any more are left, and told.
    #[arg(long, value_name = "DATE", requires = "until", conflicts_with = "events")]
    pub since: Option<String>,
    /// With --since: the last day, whole, or the instant before which they were first received.
    #[arg(long, value_name = "DATE", requires = "since")]
    pub until: Option<String>,
    /// Why; kept with your user name. Needed unless --to is given.
    #[arg(long, value_name = "TEXT", required_unless_present = "to")]
    pub reason: Option<String>,
    /// Send the events to this URL of your own, freshly signed, and apply nothing here. Only https, or http on this machine.
    #[arg(long, value_name = "URL", requires = "events")]
    pub to: Option<String>,
    /// With --to: how often each is sent, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "to", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub times: u32,
}

/// How many rows a list has: one at least.
fn limit(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| "must be a whole number, 1 or more".to_owned())
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
