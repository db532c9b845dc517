//! Commands: one file per subcommand.

pub mod demo;
