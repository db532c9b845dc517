//! `recon init`: writes a commented `recon.toml` and the local queries. What is there already stays as it is.

use super::Outcome;
use crate::config::FILE_NAME;
use crate::gather::DEFAULT_QUERIES;
use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// The configuration that `init` writes.
pub const CONFIGURATION: &str = include_str!("init.toml");

/// Writes the files into `dir` and says what to do next.
///
/// # Errors
/// When a file cannot be written; what was written before it stays.
pub fn init(dir: &Path, out: &mut dyn Write) -> Result<Outcome> {
    let dir = if dir == Path::new(".") { Path::new("") } else { dir };
    let queries = dir.join("queries").join("local");
    std::fs::create_dir_all(&queries).with_context(|| format!("make the folder {}", queries.display()))?;
    let configuration = dir.join(FILE_NAME);
    let mut lines = vec![write_new(&configuration, CONFIGURATION)?];
    for (name, text) in DEFAULT_QUERIES {
        lines.push(write_new(&queries.join(name), text)?);
    }
    let config =
        if dir == Path::new("") { String::new() } else { format!(" --config {}", configuration.display()) };
    lines.push(String::new());
    lines.push("next:".to_owned());
    lines.push(
        "  1. read recon.toml: time_zone, and where your inbox and books are ([inbox] url, [local] url);"
            .to_owned(),
    );
    lines.push(
        "     where they are your own tables, rewrite queries/local/*.sql (each says what it must return)"
            .to_owned(),
    );
    lines.push(
        "  2. export STRIPE_API_KEY=rk_live_…   (recon.toml lists what it must be able to read)".to_owned(),
    );
    lines.push(format!("  3. recon{config} --since 2024-05-01"));
    lines.push(format!(
        "to receive webhooks: set webhook_secrets, run `recon{config} serve` and `recon{config} work` (or serve --work)"
    ));
    for line in lines {
        writeln!(out, "{line}").context("write to stdout")?;
    }
    Ok(Outcome::Clean)
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> Result<String> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes()).with_context(|| format!("write {}", path.display()))?;
            Ok(format!("wrote {}", path.display()))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Ok(format!("kept  {} (it was there)", path.display()))
        }
        Err(error) => Err(error).with_context(|| format!("write {}", path.display())),
    }
}
