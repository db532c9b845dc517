//! A process of the product: this very program, started, watched and killed.

use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running process. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: PathBuf,
}

/// This program with the folder's configuration; what it logs is added to `log` there.
fn command(folder: &Path, log: &Path, arguments: &[&str]) -> Result<Command> {
    let program = std::env::current_exe().context("find this program")?;
    let log = OpenOptions::new().create(true).append(true).open(log);
    let log = log.with_context(|| format!("open a log in {}", folder.display()))?;
    let mut command = Command::new(program);
    command.arg("--config").arg(folder.join(crate::config::FILE_NAME)).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Ok(command)
}

impl Process {
    /// Starts `recon work`.
    pub(super) fn worker(folder: &Path) -> Result<Self> {
        let log = folder.join("worker.log");
        let child = command(folder, &log, &["work"])?.spawn().context("start recon work")?;
        Ok(Self { child, log })
    }

    /// Starts `recon serve`; answers with the URL that it takes deliveries at.
    pub(super) async fn receiver(folder: &Path) -> Result<(Self, String)> {
        let log = folder.join("receiver.log");
        let mut command = command(folder, &log, &["serve"])?;
        let mut child = command.stdout(Stdio::piped()).spawn().context("start recon serve")?;
        let stdout = child.stdout.take();
        let process = Self { child, log };
        let line =
            tokio::task::spawn_blocking(move || first_line(stdout)).await.context("read its words")??;
        let url = line.strip_prefix("POST ").map(|url| url.trim().to_owned());
        let url = url.with_context(|| format!("recon serve did not start; see {}", process.log.display()))?;
        Ok((process, url))
    }

    /// Runs a command to its end; its exit code and the last line that it said.
    pub(super) fn run(folder: &Path, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        let mut command = command(folder, &folder.join("worker.log"), arguments)?;
        let output = command.stdout(Stdio::piped()).output().context("run this program")?;
        let said = String::from_utf8_lossy(&output.stdout);
        Ok((output.status.code(), said.lines().last().unwrap_or_default().to_owned()))
    }

    /// Its id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where it logs to.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Kills it (SIGKILL: it learns nothing of it). Answers the signal that ended it, `None` where it had
    /// ended by itself.
    pub(super) fn kill(&mut self) -> Result<Option<i32>> {
        self.child.kill().context("kill a process")?;
        Ok(self.child.wait().context("wait for a killed process")?.signal())
    }
}

fn first_line(stdout: Option<ChildStdout>) -> Result<String> {
    let mut line = String::new();
    BufReader::new(stdout.context("a pipe")?).read_line(&mut line).context("read what recon serve says")?;
    Ok(line)
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have been killed before.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
