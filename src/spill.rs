//! Temporary files that are written once and read back in pieces: what does not fit into memory.
//!
//! A spill file has no name: it is removed from its folder as soon as it is open, so nothing is left
//! behind by an error, a drop or a kill. Do not look for it with `ls`; `df` shows what it takes.

use anyhow::{Context, Result};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the files of one process apart while they still have a name.
static FILE_COUNT: AtomicU64 = AtomicU64::new(0);
/// Names that are tried, where something has the first.
const NAMES_MAX: u32 = 100;

/// One nameless file. Appending and reading need no lock: every append reserves its own range.
#[derive(Debug)]
pub(crate) struct Spill {
    file: File,
    folder: PathBuf,
    end: AtomicU64,
}

/// A range of a spill file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// First byte.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) len: usize,
}

impl Spill {
    /// A new empty file in `folder`, which is made if it is missing.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("make the spill folder {}", folder.display()))?;
        // In a folder of everybody's, what is there already (a link of a stranger among it) is not opened.
        let open = || -> std::io::Result<File> {
            let number = FILE_COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".recon-spill-{}-{number}", std::process::id()));
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
            fs::remove_file(&path)?;
            Ok(file)
        };
        let mut opened = open();
        for _ in 0..NAMES_MAX {
            match &opened {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => opened = open(),
                _ => break,
            }
        }
        let file = opened.with_context(|| format!("make a spill file in {}", folder.display()))?;
        Ok(Self::of(file, folder))
    }

    fn of(file: File, folder: &Path) -> Self {
        Self { file, folder: folder.to_owned(), end: AtomicU64::new(0) }
    }

    /// Appends bytes.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<Block> {
        let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file
            .write_all_at(bytes, offset)
            .with_context(|| format!("write a spill file in {}", self.folder.display()))?;
        Ok(Block { offset, len: bytes.len() })
    }

    /// Fills `buffer` from `offset` on.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file
            .read_exact_at(buffer, offset)
            .with_context(|| format!("read a spill file in {}", self.folder.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_is_read_back_and_no_name_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::create(&folder.path().join("new")).unwrap();
        spill.append(b"first").unwrap();
        let block = spill.append(b"second").unwrap();
        let mut buffer = vec![0; block.len];
        spill.read(&mut buffer, block.offset).unwrap();
        assert_eq!(buffer, b"second");
        assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 0);
    }

    #[test]
    fn a_full_disk_names_the_folder() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = Spill::of(full, Path::new("/var/spill")).append(b"x").unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("/var/spill") && text.contains("No space left"), "{text}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = Spill::create(Path::new("/dev/null/spill")).unwrap_err();
        assert!(format!("{error:#}").contains("/dev/null/spill"));
    }
}
