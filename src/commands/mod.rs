//! Commands: one file per subcommand. A command answers with an [`Outcome`]; only `main` turns that
//! into an exit code.

pub mod apply;
pub mod check;
pub mod completions;
pub mod demo;
pub mod findings;
pub mod inbox;
pub mod init;
pub mod man;
pub mod outbox;
pub mod prune;
pub mod replay;
pub mod run;
pub mod serve;
pub mod show;
pub mod status;
pub mod work;
pub mod compare;

pub use crate::report::Outcome;

use crate::report::next_steps::shell_word;

/// A count with the word for one, or for any other number of them.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The program as it was typed, for commands that can be pasted: a newcomer runs it from the build's folder.
fn program() -> String {
    shell_word(&std::env::args().next().unwrap_or_else(|| "recon".to_owned()))
}
