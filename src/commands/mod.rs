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
mod output;
pub mod prune;
pub mod replay;
pub mod run;
pub mod serve;
pub mod show;
pub mod status;
pub mod trouble;
pub mod work;
pub mod compare;

pub use crate::report::Outcome;
pub use output::Output;

use crate::report::next_steps::shell_word;

/// A count with the word for one, or for any other number of them.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The program as it was typed, for commands that can be pasted: a newcomer runs it from the build's folder.
fn program() -> String {
    let typed = std::env::args_os().next().map(|program| program.to_string_lossy().into_owned());
    shell_word(&typed.unwrap_or_else(|| "recon".to_owned()))
}

/// What was typed after the program. A path need not be UTF-8.
pub fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned())
}
