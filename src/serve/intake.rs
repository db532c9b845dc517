//! From verified deliveries to committed rows. Deliveries that arrive together share one commit: while one
//! commit is under way, the next ones gather.
//!
//! One task writes. It answers a delivery only when its rows are safe, and says so at once when they cannot
//! be: a store that does not answer in time is left alone for a moment, so that nobody waits for it in vain.

use super::metrics::Metrics;
use super::spill::Spill;
use crate::config::StoreUrl;
use crate::store::arrivals::{Arrival, Filed, file_arrivals};
use crate::store::{Access, Store, is_busy};
use anyhow::{Context, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Deliveries in one commit.
const COMMIT_DELIVERIES_MAX: usize = 500;
/// Times that a commit is begun again because another writer was in the way.
const COMMIT_ATTEMPTS: u32 = 3;
/// Spill files brought back before deliveries that wait have their turn.
const BROUGHT_BACK_FILES: usize = 8;
/// How long a store that failed is left alone.
const REST: Duration = Duration::from_millis(500);

/// Why a delivery was not taken. The provider is to come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Too many deliveries wait.
    Full,
    /// Neither the store nor the spill folder took it.
    StoreDown,
    /// The receiver is ending.
    Ending,
}

/// The events of one delivery, and who waits for them.
struct Waiting {
    arrivals: Vec<Arrival>,
    answer: oneshot::Sender<Result<Vec<Filed>, Unavailable>>,
}

/// The way in. Cheap to clone; when the last one is dropped, the writer ends after what it has.
#[derive(Clone)]
pub struct Intake {
    queue: mpsc::Sender<Waiting>,
}

/// What the writer is started with.
#[derive(Clone, Debug)]
pub struct Writing {
    /// The store's URL.
    pub store_url: StoreUrl,
    /// Deliveries that may wait.
    pub waiting_max: usize,
    /// How long a commit may take.
    pub commit_timeout: Duration,
    /// Where deliveries are kept while the store cannot be reached.
    pub spill: Option<Spill>,
}

impl Intake {
    /// Starts the writer. The store need not be reachable yet.
    #[must_use]
    pub fn start(writing: Writing, metrics: Arc<Metrics>) -> (Self, JoinHandle<()>) {
        let (queue, waiting) = mpsc::channel(writing.waiting_max);
        let writer = Writer { writing, metrics, store: None, rests_until: None };
        (Self { queue }, tokio::spawn(writer.run(waiting)))
    }

    /// Hands over the events of one delivery and waits until they are safe.
    ///
    /// # Errors
    /// When they are not; nothing may be said to the provider but 503.
    pub async fn file(&self, arrivals: Vec<Arrival>) -> Result<Vec<Filed>, Unavailable> {
        let (answer, answered) = oneshot::channel();
        match self.queue.try_send(Waiting { arrivals, answer }) {
            Ok(()) => answered.await.unwrap_or(Err(Unavailable::Ending)),
            Err(mpsc::error::TrySendError::Full(_)) => Err(Unavailable::Full),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Unavailable::Ending),
        }
    }
}

struct Writer {
    writing: Writing,
    metrics: Arc<Metrics>,
    store: Option<Store>,
    rests_until: Option<Instant>,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<Waiting>) {
        let mut waiting = Vec::new();
        let mut tick = tokio::time::interval(REST);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = tick.tick() => self.bring_back_spilled().await,
                count = queue.recv_many(&mut waiting, COMMIT_DELIVERIES_MAX) => {
                    if count == 0 {
                        break;
                    }
                    self.take(std::mem::take(&mut waiting)).await;
                }
            }
        }
        self.bring_back_spilled().await;
        if let Some(store) = self.store.take() {
            store.close().await;
        }
    }

    /// One commit for all that wait, or one spill file.
    async fn take(&mut self, waiting: Vec<Waiting>) {
        let arrivals: Vec<Arrival> = waiting.iter().flat_map(|one| one.arrivals.iter().cloned()).collect();
        let filed = match self.commit(&arrivals).await {
            Ok(filed) => Ok(filed),
            Err(error) => {
                tracing::error!("deliveries could not be stored: {error:#}");
                self.spill(&arrivals).await
            }
        };
        let mut filed = filed.map(Vec::into_iter);
        for one in waiting {
            let answer = match &mut filed {
                Ok(filed) => Ok(filed.by_ref().take(one.arrivals.len()).collect()),
                Err(unavailable) => Err(*unavailable),
            };
            // Whoever hung up comes again, and finds the event there.
            drop(one.answer.send(answer));
        }
    }

    async fn commit(&mut self, arrivals: &[Arrival]) -> Result<Vec<Filed>> {
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            anyhow::bail!("the store failed a moment ago");
        }
        let limit = self.writing.commit_timeout;
        let committed = match tokio::time::timeout(limit, self.commit_within(arrivals)).await {
            Ok(committed) => committed,
            Err(_) => Err(anyhow::anyhow!("the store did not answer within {limit:?}")),
        };
        self.rests_until = committed.is_err().then(|| Instant::now() + REST);
        committed
    }

    async fn commit_within(&mut self, arrivals: &[Arrival]) -> Result<Vec<Filed>> {
        if self.store.is_none() {
            self.store = Some(Store::open(&self.writing.store_url, Access::ReadWrite).await?);
        }
        let store = self.store.as_ref().context("the store is open")?;
        let mut attempt = 1;
        loop {
            match commit(store, arrivals).await {
                Err(error) if attempt < COMMIT_ATTEMPTS && is_busy(&error) => attempt += 1,
                other => return other,
            }
        }
    }

    async fn spill(&self, arrivals: &[Arrival]) -> Result<Vec<Filed>, Unavailable> {
        let Some(spill) = &self.writing.spill else { return Err(Unavailable::StoreDown) };
        match spill.keep(arrivals).await {
            Ok(()) => {
                self.metrics.spilled(arrivals.len());
                // Whether they are new shows when they come back.
                Ok(vec![Filed::New; arrivals.len()])
            }
            Err(error) => {
                tracing::error!("deliveries could not be spilled: {error:#}");
                Err(Unavailable::StoreDown)
            }
        }
    }

    /// Moves what was spilled into the store, oldest first, as long as the store takes it.
    async fn bring_back_spilled(&mut self) {
        let Some(spill) = self.writing.spill.clone() else { return };
        for _ in 0..BROUGHT_BACK_FILES {
            let batch = match spill.oldest().await {
                Ok(Some(batch)) => batch,
                Ok(None) => return,
                Err(error) => {
                    tracing::error!("a spilled file cannot be read: {error:#}");
                    return;
                }
            };
            if let Err(error) = self.commit(&batch.arrivals).await {
                tracing::debug!("spilled deliveries wait: {error:#}");
                return;
            }
            if let Err(error) = spill.remove(&batch).await {
                tracing::error!("a spilled file that is stored by now cannot be removed: {error:#}");
                return;
            }
            self.metrics.brought_back(batch.arrivals.len());
        }
    }
}

async fn commit(store: &Store, arrivals: &[Arrival]) -> Result<Vec<Filed>> {
    let mut tx = store.begin_write().await?;
    let filed = file_arrivals(&mut tx, arrivals).await?;
    tx.commit().await.context("commit deliveries")?;
    Ok(filed)
}
