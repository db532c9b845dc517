//! The bytes of an event as received, or other ones that came under its id: given only to who asks for them in words.
//!
//! They hold personal data, so a file of them is readable for its owner only, and nothing is written over.

use super::super::Outcome;
use super::shown;
use crate::cli::{ShowEventArgs, UsageError};
use crate::store::operating::{self, Filed};
use crate::store::{Store, others};
use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// As many digits of a hash as tell which one is meant.
const HASH_DIGITS_MIN: usize = 8;

/// The bytes that are meant.
pub(super) async fn asked_for(store: &Store, event: &Filed, args: &ShowEventArgs) -> Result<Vec<u8>> {
    let name = shown(&event.key);
    let Some(hash) = &args.other else {
        let body = operating::raw(store, &event.key).await?.body;
        return body.ok_or_else(|| dropped(&format!("the bytes of {name}")).into());
    };
    if !args.body && args.save.is_none() {
        let hint = "--save FILE writes them to a file that only you can read; --body prints them";
        return Err(UsageError::new("--other gives personal data: say where to", hint).into());
    }
    let all = format!("`recon inbox show {name}` lists the hashes of the others");
    let hash = hash.trim().to_ascii_lowercase();
    if hash.len() < HASH_DIGITS_MIN || !hash.chars().all(|digit| digit.is_ascii_hexdigit()) {
        let message = "--other must be a hash, or its first eight digits or more";
        return Err(UsageError::new(message, all).into());
    }
    match others::body(store, &event.key, &hash).await? {
        others::Named::One(Some(body)) => Ok(body),
        others::Named::One(None) => Err(dropped(&format!("the bytes {hash} under {name}")).into()),
        others::Named::Several => {
            Err(UsageError::new(format!("{hash} is the beginning of several hashes"), all).into())
        }
        others::Named::Nothing => {
            Err(UsageError::new(format!("no other bytes of {name} have the hash {hash}"), all).into())
        }
    }
}

fn dropped(what: &str) -> UsageError {
    UsageError::new(
        format!("{what} are no longer kept"),
        "`recon prune` dropped them after `[receive] retention`; the provider or a backup may have them",
    )
}

/// Gives them to where they are wanted.
pub(super) fn give(bytes: &[u8], args: &ShowEventArgs, out: &mut (dyn Write + Send)) -> Result<Outcome> {
    let Some(path) = &args.save else {
        out.write_all(bytes)?;
        return Ok(Outcome::Clean);
    };
    save(bytes, path)?;
    writeln!(out, "wrote {} bytes to {}, which only you can read", bytes.len(), path.display())?;
    writeln!(out, "outcome=clean findings=0")?;
    Ok(Outcome::Clean)
}

/// Whether another file name would help.
const fn is_of_place(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
    )
}

fn save(bytes: &[u8], path: &Path) -> Result<()> {
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let message = format!("--save {}: it is there already", path.display());
            return Err(UsageError::new(message, "name a new file: nothing is written over").into());
        }
        Err(error) if is_of_place(error.kind()) => {
            let message = format!("--save {}: {error}", path.display());
            let hint = "name a new file in a folder that is there and that you may write";
            return Err(UsageError::new(message, hint).into());
        }
        opened => opened.with_context(|| format!("write {}", path.display()))?,
    };
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        drop(std::fs::remove_file(path));
    }
    written.with_context(|| format!("write {}", path.display()))
}
