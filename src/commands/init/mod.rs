//! `recon init`: writes a commented `recon.toml` and the local queries. What is there already stays as it is.

mod difference;
mod from;

use super::Outcome;
use crate::cli::InitArgs;
use crate::config::FILE_NAME;
use crate::gather::DEFAULT_QUERIES;
use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The configuration that `init` writes.
pub const CONFIGURATION: &str = include_str!("../init.toml");

/// Writes the files and says what to do next.
///
/// # Errors
/// When a database cannot be looked at, or a file cannot be written; what was written before it stays.
pub async fn init(args: &InitArgs, out: &mut (dyn Write + Send)) -> Result<Outcome> {
    let folder = Folder::new(&args.dir);
    if args.from.is_some() || args.from_env.is_some() {
        return from::propose(args, &folder, out).await;
    }
    let files = DEFAULT_QUERIES.map(|(name, text)| (name, text.to_owned()));
    let mut lines = folder.write(CONFIGURATION, &files)?;
    let config = folder.option();
    lines.push(String::new());
    lines.push("next:".to_owned());
    lines.push(
        "  1. read recon.toml: time_zone, and where your inbox and books are ([inbox] url, [local] url);"
            .to_owned(),
    );
    lines.push(
        "     where they are your own tables, rewrite queries/local/*.sql (each says what it must return),"
            .to_owned(),
    );
    lines.push("     or let `recon init --from-env DATABASE_URL` in a new folder propose them".to_owned());
    lines.push(
        "  2. export STRIPE_API_KEY=rk_live_…   (recon.toml lists what it must be able to read)".to_owned(),
    );
    lines.push(format!("  3. recon{config} --since 2024-05-01"));
    lines.push(format!(
        "to receive webhooks: set webhook_secrets, run `recon{config} serve` and `recon{config} work` (or serve --work)"
    ));
    say(out, &lines)?;
    Ok(Outcome::Clean)
}

fn say(out: &mut dyn Write, lines: &[String]) -> Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{line}")).context("write to stdout")
}

/// Where the files go.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new(dir: &Path) -> Self {
        Self { path: if dir == Path::new(".") { PathBuf::new() } else { dir.to_owned() } }
    }

    fn is_here(&self) -> bool {
        self.path == Path::new("")
    }

    /// What the next commands need to find the configuration.
    fn option(&self) -> String {
        if self.is_here() {
            String::new()
        } else {
            format!(" --config {}", self.path.join(FILE_NAME).display())
        }
    }

    /// Writes the configuration and the queries that are not there yet; a line for each.
    fn write(&self, configuration: &str, queries: &[(&str, String)]) -> Result<Vec<String>> {
        let folder = self.path.join("queries").join("local");
        std::fs::create_dir_all(&folder).with_context(|| format!("make the folder {}", folder.display()))?;
        let mut lines = write_new(&self.path.join(FILE_NAME), configuration)?;
        for (name, text) in queries {
            lines.extend(write_new(&folder.join(name), text)?);
        }
        Ok(lines)
    }
}

/// Writes a file that is not there yet. One that is there stays, and what would be different in it is shown.
fn write_new(path: &Path, text: &str) -> Result<Vec<String>> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => {
            file.write_all(text.as_bytes()).with_context(|| format!("write {}", path.display()))?;
            Ok(vec![format!("wrote {}", path.display())])
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Ok(vec![format!("kept  {} (it was there)", path.display())])
        }
        Err(error) => Err(error).with_context(|| format!("write {}", path.display())),
    }
}
