//! A demonstration's folder: its own files and nobody else's.

use crate::config::{FILE_NAME, Unusable};
use crate::store::{Access, Store};
use anyhow::{Context, Result};
use std::path::Path;

/// How the configuration of a demonstration begins, by which its folder is known again.
pub const MARK: &str = "# Written by `recon demo`";
/// The store.
pub const STORE: &str = "recon.db";
/// The files of a demonstration beside its reports.
pub const FILES: [&str; 8] = [
    STORE,
    "recon.db-wal",
    "recon.db-shm",
    FILE_NAME,
    "stripe.key",
    "webhook.secret",
    "receiver.log",
    "worker.log",
];

/// A store holds the books of whoever runs on it, and a demonstration begins by emptying its own.
///
/// # Errors
/// When a file that is needed is there and was not written by a demonstration.
pub fn refuse_another_owner(folder: &Path) -> Result<()> {
    let is_ours = std::fs::read(folder.join(FILE_NAME)).is_ok_and(|text| text.starts_with(MARK.as_bytes()));
    let met = FILES.iter().map(|name| folder.join(name)).find(|path| path.exists());
    match met {
        Some(path) if !is_ours => Err(Unusable::new(
            format!("{} is there already and was not written by `recon demo`", path.display()),
            "name a folder of its own after --keep or --practice, such as `recon demo --keep demo`",
        )
        .into()),
        _ => Ok(()),
    }
}

/// A store without an earlier demonstration's rows in it.
///
/// # Errors
/// When the old one cannot be removed, or the new one cannot be made.
pub async fn open_empty(folder: &Path) -> Result<Store> {
    for name in [STORE, "recon.db-wal", "recon.db-shm"] {
        remove_if_there(&folder.join(name))?;
    }
    Store::open(&format!("sqlite:{}", folder.join(STORE).display()), Access::ReadWrite).await
}

/// Writes one of its files.
///
/// # Errors
/// When it cannot be written.
pub fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}

/// Removes a file.
///
/// # Errors
/// When it is there and stays.
pub fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Leaves only what is no file of the demonstration: its reports.
///
/// # Errors
/// When a file stays.
pub fn tidy(folder: &Path) -> Result<()> {
    for name in FILES {
        remove_if_there(&folder.join(name))?;
    }
    Ok(())
}
