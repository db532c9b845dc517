//! What a killed process left behind. Whoever makes a file that outlives a kill holds a lock on it while it lives, and
//! removes those of the same kind that nobody holds.
//!
//! The one thing to get right: a process id says nothing in a folder that machines or containers share; a lock does.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What is younger may be in the making: there, and not locked yet.
const AGE_MIN: Duration = Duration::from_mins(1);
/// The file of a folder that its owner holds.
const LOCK: &str = "lock";
/// Names that are tried, where another one has the first.
const NAMES_MAX: u32 = 100;

static COUNT: AtomicU64 = AtomicU64::new(0);

/// A folder of this process alone, that only its user may enter; dropping it removes it.
#[derive(Debug)]
pub(crate) struct OwnFolder {
    path: PathBuf,
    /// Held for as long as the folder is used.
    _lock: File,
}

impl OwnFolder {
    /// A new one in `folder`, its name beginning with `prefix`. Those that killed processes left there are removed.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn new(folder: &Path, prefix: &str) -> Result<Self> {
        sweep(folder, |name| name.starts_with(prefix));
        let make = |path: &Path| -> std::io::Result<File> {
            // Whoever was there before, a link among them, is not taken for ours.
            fs::DirBuilder::new().mode(0o700).create(path)?;
            let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.join(LOCK))?;
            // Where there are no locks, nobody takes what is left either.
            lock.lock().ok();
            Ok(lock)
        };
        let mut tries = 0;
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!("{prefix}{}-{number}", std::process::id()));
            match make(&path) {
                Ok(lock) => return Ok(Self { path, _lock: lock }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && tries < NAMES_MAX => {
                    tries += 1;
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("make the folder {}", path.display()));
                }
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next one.
        fs::remove_dir_all(&self.path).ok();
    }
}

/// Removes the files and folders of `folder` that `is_ours` knows by their names and nobody holds any more. What cannot
/// be removed stays: it is somebody else's.
pub(crate) fn sweep(folder: &Path, is_ours: impl Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let named = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(&is_ours));
    for path in named.map(|entry| entry.path()) {
        if let Err(error) = remove_unheld(&path) {
            tracing::debug!("{} is left alone: {error}", path.display());
        }
    }
}

fn remove_unheld(path: &Path) -> std::io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    let is_folder = found.is_dir();
    let is_ripe = found.modified()?.elapsed().is_ok_and(|age| age >= AGE_MIN);
    if !is_ripe || !(is_folder || found.is_file()) {
        return Ok(());
    }
    let lock = if is_folder { path.join(LOCK) } else { path.to_owned() };
    let lock = OpenOptions::new().write(true).open(lock)?;
    if lock.metadata()?.uid() != found.uid() || lock.try_lock().is_err() {
        return Ok(());
    }
    if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Whether a name is `.<name>.<process id>.tmp`, as [`unfinished`] makes it.
pub(crate) fn is_unfinished(found: &str, name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let rest = found.strip_prefix('.').and_then(|rest| rest.strip_prefix(name));
    let process = rest.and_then(|rest| rest.strip_prefix('.')).and_then(|rest| rest.strip_suffix(".tmp"));
    process.is_some_and(|process| !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The name of a file beside `target` while it is written.
pub(crate) fn unfinished(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn aged(path: &Path) {
        let file = File::open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }

    #[test]
    fn what_nobody_holds_is_removed_and_what_somebody_holds_is_not() {
        let place = tempfile::tempdir().unwrap();
        let held = OwnFolder::new(place.path(), "recon-files-").unwrap();
        fs::write(held.path().join("rows.db"), "rows").unwrap();
        let left = place.path().join("recon-files-1-1");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        let young = place.path().join("recon-files-1-2");
        fs::create_dir(&young).unwrap();
        fs::write(young.join(LOCK), "").unwrap();
        let other = place.path().join("other-1-1");
        fs::create_dir(&other).unwrap();
        for path in [held.path(), &left, &other] {
            aged(path);
        }
        let second = OwnFolder::new(place.path(), "recon-files-").unwrap();
        assert!(!left.exists(), "its process is gone");
        assert!(held.path().join("rows.db").exists() && young.exists() && other.exists());
        let mode = fs::metadata(second.path()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700, "nobody else may read what lies there");
        let (first, next) = (held.path().to_owned(), second.path().to_owned());
        drop((held, second));
        assert!(!first.exists() && !next.exists());
    }

    #[test]
    fn a_link_that_waits_under_the_name_is_not_followed() {
        let (place, trap) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for number in COUNT.load(Ordering::Relaxed)..COUNT.load(Ordering::Relaxed) + 20 {
            let name = format!("recon-files-{}-{number}", std::process::id());
            std::os::unix::fs::symlink(trap.path(), place.path().join(name)).unwrap();
        }
        let made = OwnFolder::new(place.path(), "recon-files-").unwrap();
        assert!(!fs::symlink_metadata(made.path()).unwrap().is_symlink());
        assert_eq!(fs::read_dir(trap.path()).unwrap().count(), 0);
    }

    #[test]
    fn unfinished_files_are_known_by_their_target() {
        let name = OsStr::new("differences.csv");
        assert!(is_unfinished(".differences.csv.4711.tmp", name));
        for other in
            ["differences.csv", ".differences.csv.tmp", ".differences.csv.x.tmp", ".other.csv.4711.tmp"]
        {
            assert!(!is_unfinished(other, name), "{other}");
        }
        let made = unfinished(Path::new("out/differences.csv"));
        assert!(is_unfinished(made.file_name().unwrap().to_str().unwrap(), name));
    }
}
