//! `recon man`: the manual page, generated from the same definitions as the command line.
//!
//! What a reader would get wrong: the texts after the help are laid out by hand, so their sections are
//! preformatted here; the generator would flow them together.

use crate::cli;
use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use std::io::Write;

/// Writes the manual page in roff: every subcommand on the one page, then examples, exit status and environment.
///
/// # Errors
/// When `out` cannot be written.
pub fn man(out: &mut dyn Write) -> Result<()> {
    let command = cli::command();
    let mut text = Vec::new();
    page(&command, &mut text).context("make the manual page")?;
    out.write_all(&text).context("write the manual page")
}

fn page(command: &Command, out: &mut dyn Write) -> std::io::Result<()> {
    let manual = Man::new(command.clone());
    manual.render_title(out)?;
    manual.render_name_section(out)?;
    manual.render_synopsis_section(out)?;
    manual.render_description_section(out)?;
    manual.render_options_section(out)?;
    for subcommand in listed(command) {
        section(subcommand, subcommand.get_name(), out)?;
        for nested in listed(subcommand) {
            section(nested, &format!("{} {}", subcommand.get_name(), nested.get_name()), out)?;
        }
    }
    if let Some(help) = command.get_after_help() {
        preformatted(".SH", &help.to_string(), out)?;
    }
    manual.render_version_section(out)
}

fn listed(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help")
}

/// One subcommand, as a section of its own.
fn section(subcommand: &Command, name: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let manual = Man::new(subcommand.clone());
    let mut section = Vec::new();
    manual.render_synopsis_section(&mut section)?;
    manual.render_description_section(&mut section)?;
    if subcommand.get_arguments().any(|argument| !argument.is_hide_set()) {
        manual.render_options_section(&mut section)?;
    }
    writeln!(out, ".SH \"COMMAND {}\"", name.to_uppercase())?;
    let section = String::from_utf8_lossy(&section);
    out.write_all(section.replace("\n.SH SYNOPSIS", "").replace("\n.SH ", "\n.SS ").as_bytes())?;
    match subcommand.get_after_help() {
        Some(help) => preformatted(".SS", &help.to_string(), out),
        None => Ok(()),
    }
}

/// Each line `Name:` at the margin begins a section whose lines stay as they are.
fn preformatted(heading: &str, text: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let mut is_open = false;
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            if is_open {
                writeln!(out, ".fi")?;
            }
            let name = if name == "Exit codes" { "Exit status" } else { name };
            writeln!(out, "{heading} \"{}\"\n.nf", name.to_uppercase())?;
            is_open = true;
        } else {
            let line = line.replace('\\', "\\e").replace('-', "\\-");
            let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
            writeln!(out, "{guard}{line}")?;
        }
    }
    if is_open { writeln!(out, ".fi") } else { Ok(()) }
}
