//! `recon man`: the manual page, generated from the same definitions as the command line.

use crate::cli::Cli;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::io::Write;

/// Writes the manual page in roff, with a section for each subcommand.
///
/// # Errors
/// When `out` cannot be written.
pub fn man(out: &mut dyn Write) -> Result<()> {
    let mut command = Cli::command();
    command.build();
    let page = clap_mangen::Man::new(command.clone());
    page.render(out).context("write the manual page")?;
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        let title = format!("\n.SH \"recon {}\"\n", subcommand.get_name());
        out.write_all(title.as_bytes()).context("write the manual page")?;
        let page = clap_mangen::Man::new(subcommand.clone());
        page.render_synopsis_section(out).context("write the manual page")?;
        page.render_description_section(out).context("write the manual page")?;
        page.render_options_section(out).context("write the manual page")?;
    }
    Ok(())
}
