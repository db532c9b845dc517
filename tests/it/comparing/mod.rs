//! `recon compare` at the boundary: files in, exit code, text and file of differences out.

mod bad_input;
mod forms;
mod oracle;
mod reports;

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with files, and the program run inside of it.
pub struct Table {
    pub folder: tempfile::TempDir,
}

/// What a run said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// The number behind a name on the last line.
    #[track_caller]
    pub fn last(&self, name: &str) -> &str {
        let line = self.stdout.lines().last().unwrap_or_default();
        let found = line.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no {name} in `{line}`\n{}{}", self.stdout, self.stderr))
    }

    /// That it ended with an error of one line, a hint, and nothing else.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        let Self { stdout, stderr, .. } = self;
        assert_eq!(self.code, code, "{stdout}{stderr}");
        let outcome = if code == 78 { "config" } else { "incomplete" };
        assert_eq!(*stdout, format!("outcome={outcome} findings=0\n"), "{stderr}");
        let errors: Vec<&str> = stderr.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{stderr}");
        assert!(stderr.lines().count() <= 2 && stderr.len() < 600, "{stderr}");
        for word in words {
            assert!(stderr.contains(word), "`{word}` is not in: {stderr}");
        }
    }
}

impl Table {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with a left and a right CSV file.
    pub fn of(left: &str, right: &str) -> Self {
        let table = Self::new();
        table.write("left.csv", left);
        table.write("right.csv", right);
        table
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// `recon compare` with these arguments and nothing else.
    #[track_caller]
    pub fn raw(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.current_dir(self.folder.path()).env_clear().arg("compare").args(arguments);
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// left.csv against right.csv by `id`, `amount`, `currency`.
    #[track_caller]
    pub fn compare(&self, more: &[&str]) -> Said {
        self.sides("left.csv", "right.csv", more)
    }

    #[track_caller]
    pub fn sides(&self, left: &str, right: &str, more: &[&str]) -> Said {
        let named = [left, right, "--key", "id", "--amount", "amount", "--currency", "currency"];
        self.raw(&[&named[..], more].concat())
    }
}

/// Rows of a CSV file by the csv crate, each with its fields by name.
pub fn rows(path: &Path) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(|row| row.unwrap()).collect()
}
