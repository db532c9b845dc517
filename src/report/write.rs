//! The only file of `report/` that touches the disk: publishes a run's files so that no reader ever
//! sees half of one.
//!
//! Every file is first written whole under a temporary name in the same folder and synced, so that a
//! full disk is met before anything is visible; then the names are changed, `manifest.json` last, and
//! the folder is synced. A second publication of the same run replaces file by file; until its
//! manifest is there, the old manifest's checksums tell that the set is changing.

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
    fs::create_dir_all(&dir).with_context(|| format!("create the report folder {}", dir.display()))?;
    sync_dir(out)?;
    let all = files.iter().map(|file| (&*file.name, &*file.bytes)).chain([(manifest::NAME, manifest_bytes)]);
    let staged = stage(&dir, all)?;
    for (temporary, target) in &staged {
        if let Err(error) = fs::rename(temporary, target) {
            remove(&staged);
            return Err(error).with_context(|| format!("put {} in its place", target.display()));
        }
    }
    sync_dir(&dir)?;
    Ok(dir)
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
