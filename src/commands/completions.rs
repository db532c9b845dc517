//! `recon completions SHELL`: completions generated from the same definitions as the command line.

use crate::cli::Cli;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::io::Write;

/// Writes the completions of `shell`.
///
/// # Errors
/// When `out` cannot be written.
pub fn completions(shell: clap_complete::Shell, out: &mut dyn Write) -> Result<()> {
    // Generated into memory first: the generator panics where a pipe is closed.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "recon", &mut text);
    out.write_all(&text).context("write the completions")
}
