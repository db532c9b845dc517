//! Where deliveries go while the store cannot be reached: one synced file for each batch, brought back oldest
//! first. A file appears whole or not at all; one that is brought back twice only counts deliveries again.

use crate::record::{EventKey, Scope};
use crate::store::arrivals::Arrival;
use anyhow::{Context, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const END: &str = ".spill";

/// A folder for deliveries that the store could not take.
#[derive(Clone, Debug)]
pub struct Spill {
    folder: PathBuf,
    files: Arc<AtomicU64>,
}

/// A file of spilled deliveries.
#[derive(Debug)]
pub struct Spilled {
    path: PathBuf,
    /// The deliveries in it.
    pub arrivals: Vec<Arrival>,
}

impl Spill {
    /// Uses `folder`, which is created if it is not there, readable for its owner only.
    ///
    /// # Errors
    /// When it cannot be created or written to.
    pub fn at(folder: &Path) -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let context = || format!("use the spill folder {}", folder.display());
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(context)?;
        let probe = folder.join(".probe");
        std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe)).with_context(context)?;
        Ok(Self { folder: folder.to_owned(), files: Arc::new(AtomicU64::new(0)) })
    }

    /// Keeps deliveries: synced before it answers.
    ///
    /// # Errors
    /// When the disk refuses; then nothing of them is kept.
    pub async fn keep(&self, arrivals: &[Arrival]) -> Result<()> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let first_us = arrivals.first().map_or(0, |arrival| arrival.received_at_us);
        let name = format!("{first_us:020}-{}-{number:06}{END}", std::process::id());
        let mut bytes = Vec::new();
        for arrival in arrivals {
            serde_json::to_writer(&mut bytes, &Line::of(arrival)).context("write down a delivery")?;
            bytes.push(b'\n');
        }
        let folder = self.folder.clone();
        let written = tokio::task::spawn_blocking(move || write_synced(&folder, &name, &bytes));
        written.await.context("the writer of a spill file ended early")?
    }

    /// The oldest file, if there is one.
    ///
    /// # Errors
    /// When the folder or the file cannot be read.
    pub async fn oldest(&self) -> Result<Option<Spilled>> {
        let folder = self.folder.clone();
        let read = tokio::task::spawn_blocking(move || read_oldest(&folder));
        read.await.context("the reader of a spill file ended early")?
    }

    /// Removes a file whose deliveries are stored.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub async fn remove(&self, spilled: &Spilled) -> Result<()> {
        let path = &spilled.path;
        tokio::fs::remove_file(path).await.with_context(|| format!("remove {}", path.display()))
    }

    /// Files that wait to be brought back.
    #[must_use]
    pub fn waiting_files(&self) -> usize {
        files(&self.folder).map_or(0, |files| files.len())
    }
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(END) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn write_synced(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    let temporary = folder.join(format!("{name}.tmp"));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, &path)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        // Half a file is no use to anybody, and a full disk has room again.
        drop(std::fs::remove_file(&temporary));
    }
    written.with_context(|| format!("keep deliveries in {}", path.display()))
}

fn read_oldest(folder: &Path) -> Result<Option<Spilled>> {
    let found = files(folder).with_context(|| format!("read the spill folder {}", folder.display()))?;
    let Some(path) = found.into_iter().next() else { return Ok(None) };
    let context = || format!("read {}", path.display());
    let text = std::fs::read_to_string(&path).with_context(context)?;
    let mut arrivals = Vec::new();
    for line in text.lines() {
        // The parser's message may repeat what it read.
        let line: Line = serde_json::from_str(line)
            .map_err(|error| {
                anyhow!("line {} is no delivery (column {})", arrivals.len() + 1, error.column())
            })
            .with_context(context)?;
        arrivals.push(line.arrival().with_context(context)?);
    }
    ensure!(!arrivals.is_empty(), "{} is empty", path.display());
    Ok(Some(Spilled { path, arrivals }))
}

/// A delivery as a line of a spill file.
#[derive(Serialize, Deserialize)]
struct Line {
    provider: String,
    account: String,
    mode: String,
    event_id: String,
    event_type: String,
    body_base64: String,
    body_sha256: String,
    headers: String,
    url: String,
    secret_slot: i64,
    received_at_us: i64,
}

impl Line {
    fn of(arrival: &Arrival) -> Self {
        let EventKey { scope, event_id } = &arrival.key;
        Self {
            provider: scope.provider.to_string(),
            account: scope.account.to_string(),
            mode: scope.mode.to_string(),
            event_id: event_id.clone(),
            event_type: arrival.event_type.clone(),
            body_base64: STANDARD.encode(&arrival.body),
            body_sha256: arrival.body_sha256.clone(),
            headers: arrival.headers.clone(),
            url: arrival.url.clone(),
            secret_slot: arrival.secret_slot,
            received_at_us: arrival.received_at_us,
        }
    }

    fn arrival(self) -> Result<Arrival> {
        let body = STANDARD.decode(&self.body_base64).map_err(|_| anyhow!("a body is no base64"))?;
        ensure!(
            crate::record::sha256_hex(&body) == self.body_sha256,
            "a body has another hash than it was kept with"
        );
        let scope = Scope::new(&self.provider, &self.account, &self.mode);
        Ok(Arrival {
            key: EventKey { scope, event_id: self.event_id },
            event_type: self.event_type,
            body,
            body_sha256: self.body_sha256,
            headers: self.headers,
            url: self.url,
            secret_slot: self.secret_slot,
            received_at_us: self.received_at_us,
        })
    }
}
