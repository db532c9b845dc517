//! The only file of `report/` that touches the disk: publishes a run's files so that no reader ever
//! sees half of one.
//!
//! The run's folder is written and synced whole under a hidden name, so that a full disk is met before
//! anything is visible, and then renamed: it is there with all of its files or not at all. A second
//! publication of the same run replaces file by file, `manifest.json` last; until its manifest is there,
//! the old manifest's checksums tell that the set is changing.

use super::{Rendered, manifest};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// Publishes into `<out>/<run id>/` and gives that folder back.
///
/// # Errors
/// When the run id or a file name is no plain name, or the disk refuses; then nothing new is visible
/// unless changing a name failed half-way, and temporary files are gone as far as the disk allows.
pub fn publish(out: &Path, run_id: &str, files: &[Rendered], manifest_bytes: &[u8]) -> Result<PathBuf> {
    let names = files.iter().map(|file| &*file.name).chain([run_id]);
    if let Some(bad) = names.into_iter().find(|name| !is_plain_name(name)) {
        bail!("write the report: {bad:?} is no plain file name");
    }
    let dir = out.join(run_id);
    let all = files.iter().map(|file| (&*file.name, &*file.bytes)).chain([(manifest::NAME, manifest_bytes)]);
    if dir.is_dir() {
        replace(&dir, all)?;
    } else {
        publish_whole(out, &dir, all)?;
    }
    Ok(dir)
}

/// Removes what a run that was killed while it published into `dir` may have left beside it.
///
/// # Errors
/// When it is there and cannot be removed.
pub fn discard(dir: &Path) -> Result<()> {
    let Some(staging) = staging(dir).filter(|staging| staging.is_dir()) else { return Ok(()) };
    fs::remove_dir_all(&staging).with_context(|| format!("remove {}", staging.display()))
}

/// `<out>/.<run id>.tmp` for `<out>/<run id>`.
fn staging(dir: &Path) -> Option<PathBuf> {
    let name = dir.file_name()?.to_str()?;
    Some(dir.with_file_name(format!(".{name}.tmp")))
}

fn publish_whole<'a>(out: &Path, dir: &Path, files: impl Iterator<Item = (&'a str, &'a [u8])>) -> Result<()> {
    discard(dir)?;
    let staging = staging(dir).context("write the report: a run folder has a name")?;
    let make = || -> Result<()> {
        fs::create_dir_all(&staging)
            .with_context(|| format!("create the report folder {}", dir.display()))?;
        for (name, bytes) in files {
            write_synced(&staging.join(name), bytes)
                .with_context(|| format!("write {}", dir.join(name).display()))?;
        }
        sync_dir(&staging)?;
        fs::rename(&staging, dir).with_context(|| format!("put {} in its place", dir.display()))
    };
    if let Err(error) = make() {
        // The first failure is the one to tell; a later run of the window removes what is left.
        fs::remove_dir_all(&staging).ok();
        return Err(error);
    }
    sync_dir(out)
}

fn replace<'a>(dir: &Path, files: impl Iterator<Item = (&'a str, &'a [u8])>) -> Result<()> {
    let staged = stage(dir, files)?;
    for (temporary, target) in &staged {
        if let Err(error) = fs::rename(temporary, target) {
            remove(&staged);
            return Err(error).with_context(|| format!("put {} in its place", target.display()));
        }
    }
    sync_dir(dir)
}

/// Writes and syncs everything under temporary names: pairs of (temporary, final) path.
fn stage<'a>(
    dir: &Path,
    files: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> Result<Vec<(PathBuf, PathBuf)>> {
    let mut staged = Vec::new();
    for (name, bytes) in files {
        let temporary = dir.join(format!(".{name}.tmp"));
        staged.push((temporary.clone(), dir.join(name)));
        if let Err(error) = write_synced(&temporary, bytes) {
            remove(&staged);
            return Err(error).with_context(|| format!("write {}", dir.join(name).display()));
        }
    }
    Ok(staged)
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// After a failure; what cannot be removed is overwritten by the next publication.
fn remove(staged: &[(PathBuf, PathBuf)]) {
    for (temporary, _) in staged {
        fs::remove_file(temporary).ok();
    }
}

/// Makes names in a folder survive a power cut.
fn sync_dir(dir: &Path) -> Result<()> {
    let opened = File::open(dir).and_then(|file| file.sync_all());
    opened.with_context(|| format!("sync the folder {}", dir.display()))
}

fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(parts.next(), Some(Component::Normal(part)) if part == name) && parts.next().is_none()
}
