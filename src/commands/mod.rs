//! Commands: one file per subcommand. A command answers with an [`Outcome`]; only `main` turns that
//! into an exit code.

pub mod apply;
pub mod completions;
pub mod demo;
pub mod init;
pub mod man;
pub mod run;
pub mod status;

pub use crate::report::Outcome;
