//! Where deliveries go while the store cannot be reached: one synced file for each batch, brought back oldest
//! first. A file appears whole or not at all; one that is brought back twice only counts deliveries again.

use crate::clock;
use crate::record::{EventKey, Scope};
use crate::store::arrivals::Arrival;
use anyhow::{Context, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Files that wait to be brought back.
const WAITING: &str = ".spill";
/// Files that are being written.
const UNFINISHED: &str = ".tmp";
/// Files that the store refused, for a person to look at.
const REFUSED: &str = ".refused";
/// What is added to the name of a file for what cannot be read of it.
const UNREADABLE: &str = ".unreadable";
/// Deliveries and bytes of files after which no further file is read for one commit.
const BATCH_DELIVERIES: usize = 500;
const BATCH_BYTES: usize = 16 << 20;
/// Age from which an unfinished file has no writer any more.
const ABANDONED: Duration = Duration::from_hours(1);

/// A folder for deliveries that the store could not take.
#[derive(Clone, Debug)]
pub struct Spill {
    folder: PathBuf,
    /// Makes the names of this process its own, together with a count: process ids come again.
    started_us: i64,
    count: Arc<AtomicU64>,
}

/// The oldest spilled deliveries, with the files that they were read from.
#[derive(Debug, Default)]
pub struct Spilled {
    paths: Vec<PathBuf>,
    /// The deliveries in them, oldest first.
    pub arrivals: Vec<Arrival>,
}

impl Spill {
    /// Uses `folder`, which is created if it is not there, readable for its owner only.
    ///
    /// # Errors
    /// When it cannot be created or written to.
    pub fn at(folder: &Path) -> Result<Self> {
        let context = || format!("use the spill folder {}", folder.display());
        DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(context)?;
        let probe = folder.join(".probe");
        std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe)).with_context(context)?;
        for path in files(folder, UNFINISHED).with_context(context)? {
            // Half a file was never answered with 2xx, and holds personal data.
            if is_abandoned(&path) {
                std::fs::remove_file(&path).with_context(context)?;
            }
        }
        Ok(Self { folder: folder.to_owned(), started_us: clock::machine_now_us(), count: Arc::default() })
    }

    /// Keeps deliveries: synced before it answers.
    ///
    /// # Errors
    /// When the disk refuses; then nothing of them is kept.
    pub async fn keep(&self, arrivals: &[Arrival]) -> Result<()> {
        self.write(arrivals, WAITING).await
    }

    /// Keeps deliveries that the store refuses, where nothing brings them back by itself.
    ///
    /// # Errors
    /// When the disk refuses.
    pub async fn set_aside(&self, arrivals: &[Arrival]) -> Result<()> {
        self.write(arrivals, REFUSED).await
    }

    async fn write(&self, arrivals: &[Arrival], end: &str) -> Result<()> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let first_us = arrivals.first().map_or(0, |arrival| arrival.received_at_us);
        let name = format!("{first_us:020}-{}-{number:06}-{}{end}", self.started_us, std::process::id());
        let mut bytes = Vec::new();
        for arrival in arrivals {
            serde_json::to_writer(&mut bytes, &Line::of(arrival)).context("write down a delivery")?;
            bytes.push(b'\n');
        }
        let folder = self.folder.clone();
        let written = tokio::task::spawn_blocking(move || write_synced(&folder, &name, &bytes));
        written.await.context("the writer of a spill file ended early")?
    }

    /// The oldest deliveries, as many as one commit takes. What cannot be read of a file is set aside and told,
    /// so that it does not stand in the way of the others; the rest of the file counts.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub async fn oldest(&self) -> Result<Spilled> {
        let folder = self.folder.clone();
        let read = tokio::task::spawn_blocking(move || read_oldest(&folder));
        read.await.context("the reader of a spill file ended early")?
    }

    /// Removes files whose deliveries are stored.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub async fn remove(&self, spilled: &Spilled) -> Result<()> {
        for path in &spilled.paths {
            match tokio::fs::remove_file(path).await {
                // Another receiver that shares the folder was faster.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                other => other.with_context(|| format!("remove {}", path.display()))?,
            }
        }
        Ok(())
    }

    /// Files that wait to be brought back.
    #[must_use]
    pub fn waiting_files(&self) -> usize {
        files(&self.folder, WAITING).map_or(0, |files| files.len())
    }

    /// Files that hold what could not be read.
    #[must_use]
    pub fn unreadable_files(&self) -> usize {
        files(&self.folder, UNREADABLE).map_or(0, |files| files.len())
    }
}

fn files(folder: &Path, end: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn is_abandoned(path: &Path) -> bool {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED))
}

fn write_synced(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    let temporary = folder.join(format!("{name}{UNFINISHED}"));
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

fn read_oldest(folder: &Path) -> Result<Spilled> {
    let found =
        files(folder, WAITING).with_context(|| format!("read the spill folder {}", folder.display()))?;
    let mut spilled = Spilled::default();
    let mut bytes = 0;
    for path in found {
        if spilled.arrivals.len() >= BATCH_DELIVERIES || bytes >= BATCH_BYTES {
            break;
        }
        match read(&path).and_then(|read| set_damaged_aside(folder, &path, read)) {
            Ok(arrivals) => {
                bytes += arrivals.iter().map(|arrival| arrival.body.len()).sum::<usize>();
                spilled.arrivals.extend(arrivals);
                spilled.paths.push(path);
            }
            Err(_) if !path.exists() => {}
            Err(error) => {
                tracing::error!("a spilled file is set aside: {error:#}");
                let mut aside = path.clone().into_os_string();
                aside.push(UNREADABLE);
                std::fs::rename(&path, aside).with_context(|| format!("set aside {}", path.display()))?;
            }
        }
    }
    Ok(spilled)
}

/// What stands in a spill file.
#[derive(Default)]
struct Content {
    arrivals: Vec<Arrival>,
    /// Lines that are no delivery, each with its end.
    damaged: Vec<u8>,
    /// What is wrong with the first of them.
    first: Option<anyhow::Error>,
}

fn read(path: &Path) -> Result<Content> {
    let context = || format!("read {}", path.display());
    let bytes = std::fs::read(path).with_context(context)?;
    let mut content = Content::default();
    for (index, bytes) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        // The parser's message may repeat what it read.
        let line: Result<Line> = serde_json::from_slice(bytes)
            .map_err(|error| anyhow!("line {} is no delivery (column {})", index + 1, error.column()));
        match line.and_then(Line::arrival) {
            Ok(arrival) => content.arrivals.push(arrival),
            Err(error) => {
                content.damaged.extend_from_slice(bytes);
                content.first.get_or_insert(error);
            }
        }
    }
    let error = content.first.take();
    if content.arrivals.is_empty() {
        return Err(error.unwrap_or_else(|| anyhow!("it is empty"))).with_context(context);
    }
    content.first = error;
    Ok(content)
}

/// Keeps the damaged lines of a file beside it, synced, before anything takes the file away.
fn set_damaged_aside(folder: &Path, path: &Path, content: Content) -> Result<Vec<Arrival>> {
    if let (Some(error), Some(name)) = (content.first, path.file_name()) {
        let name = format!("{}{UNREADABLE}", name.to_string_lossy());
        // While the store refuses, a file is read more than once.
        if !folder.join(&name).exists() {
            write_synced(folder, &name, &content.damaged)?;
            let kept = content.arrivals.len();
            tracing::error!(
                "a part of {} is set aside as {name}, {kept} deliveries of it are not: {error:#}",
                path.display()
            );
        }
    }
    Ok(content.arrivals)
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
