//! Which files a side is, and whether one of them changed while it was read.

use crate::config::Unusable;
use anyhow::{Context, Result, bail};
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files that a path or a glob names, in the order of their names.
///
/// # Errors
/// When there is none, or one of them is a folder.
pub fn expand(pattern: &str) -> Result<Vec<PathBuf>> {
    let path = Path::new(pattern);
    let is_glob = pattern.contains(['*', '?', '[']);
    let mut paths = Vec::new();
    if path.symlink_metadata().is_ok() {
        paths.push(path.to_owned());
    } else if is_glob {
        let found = glob::glob(pattern)
            .map_err(|error| Unusable::new(format!("{pattern}: no pattern of files: {error}"), ""))?;
        for path in found {
            paths.push(path.with_context(|| format!("look for {pattern}"))?);
        }
        paths.sort();
    }
    if paths.is_empty() {
        let what = if is_glob { "no file matches" } else { "there is no file" };
        bail!(Unusable::new(format!("{what} {pattern}"), "nothing was read"));
    }
    for path in &paths {
        if path.is_dir() {
            let shown = path.display();
            let hint = format!("name its files, such as '{shown}/*.csv' (in quotes)");
            bail!(Unusable::new(format!("{shown} is a folder"), hint));
        }
    }
    Ok(paths)
}

/// A file as it was when it was opened.
#[derive(Debug)]
pub(super) struct Watch {
    path: PathBuf,
    /// `None` for pipes, which have nothing to compare.
    before: Option<Stamp>,
}

/// What changes when a file is written to or replaced.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        let modified = (found.mtime(), found.mtime_nsec());
        Self { device: found.dev(), inode: found.ino(), len: found.len(), modified }
    }
}

impl Watch {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> Result<(File, Self)> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (found, file) = opened.map_err(|error| {
            let shown = path.display();
            match error.kind() {
                ErrorKind::NotFound => Unusable::new(format!("there is no file {shown}"), "").into(),
                ErrorKind::PermissionDenied => {
                    Unusable::new(format!("{shown} may not be read"), "let this user read it").into()
                }
                _ => anyhow::Error::new(error).context(format!("open {shown}")),
            }
        })?;
        let before = found.is_file().then(|| Stamp::of(&found));
        Ok((file, Self { path: path.to_owned(), before }))
    }

    /// Fails when the file is not what it was: then what was read is neither the old nor the new one.
    pub(super) fn check(&self) -> Result<()> {
        let Some(before) = &self.before else { return Ok(()) };
        let shown = self.path.display();
        let now =
            std::fs::metadata(&self.path).with_context(|| format!("{shown} went away while it was read"))?;
        if Stamp::of(&now) != *before {
            bail!("{shown} changed while it was read: wait until it is written, and compare again");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_that_changes_while_it_is_read_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let changes: [&dyn Fn(); 4] = [
            &|| std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"x").unwrap(),
            &|| std::fs::File::create(&path).map(drop).unwrap(),
            &|| {
                std::fs::write(folder.path().join("b.csv"), "id\n1\n").unwrap();
                std::fs::rename(folder.path().join("b.csv"), &path).unwrap();
            },
            &|| std::fs::remove_file(&path).unwrap(),
        ];
        for change in changes {
            std::fs::write(&path, "id\n1\n").unwrap();
            let (_file, watch) = Watch::open(&path).unwrap();
            watch.check().unwrap();
            change();
            let text = format!("{:#}", watch.check().unwrap_err());
            assert!(text.contains("a.csv") && text.contains("while it was read"), "{text}");
        }
    }
}
