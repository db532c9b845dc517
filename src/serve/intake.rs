//! The way in: a bounded queue between requests and the one task that writes.
//!
//! A delivery that has been handed over is written whether or not somebody still waits for the answer; what
//! its body takes of the memory is given back only then.

use super::metrics::Metrics;
use super::spill::Spill;
use super::writer::Writer;
use crate::config::StoreUrl;
use crate::store::arrivals::{Arrival, Filed};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Deliveries in one commit at most.
const COMMIT_DELIVERIES_MAX: usize = 500;
/// Bytes of bodies after which a commit takes no further delivery.
const COMMIT_BYTES_MAX: usize = 16 << 20;

/// Why a delivery was not taken. The provider is to come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Too many deliveries wait.
    Full,
    /// Neither the store nor the spill folder took it.
    StoreDown,
    /// The store works and refuses this delivery.
    Refused,
    /// The receiver is ending.
    Ending,
}

impl Unavailable {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::Full, Self::StoreDown, Self::Refused, Self::Ending];

    /// The word for it in the answer and in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "busy",
            Self::StoreDown => "store_unavailable",
            Self::Refused => "not_storable",
            Self::Ending => "ending",
        }
    }
}

/// The events of one delivery, and who waits for them.
pub(super) struct Waiting {
    pub arrivals: Vec<Arrival>,
    pub answer: oneshot::Sender<Result<Vec<Filed>, Unavailable>>,
    /// The share of the memory for bodies that it holds.
    pub memory: Option<OwnedSemaphorePermit>,
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
        (Self { queue }, tokio::spawn(Writer::new(writing, metrics).run(waiting)))
    }

    /// Hands over the events of one delivery and waits until they are safe. `memory` is given back when
    /// they are written.
    ///
    /// # Errors
    /// When they are not safe; nothing may be said to the provider but 503.
    pub async fn file(
        &self,
        arrivals: Vec<Arrival>,
        memory: Option<OwnedSemaphorePermit>,
    ) -> Result<Vec<Filed>, Unavailable> {
        let (answer, answered) = oneshot::channel();
        match self.queue.try_send(Waiting { arrivals, answer, memory }) {
            Ok(()) => answered.await.unwrap_or(Err(Unavailable::Ending)),
            Err(mpsc::error::TrySendError::Full(_)) => Err(Unavailable::Full),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Unavailable::Ending),
        }
    }
}

/// What waits, up to the limits of one commit; `None` when nobody can hand over anything any more. Nothing is
/// lost when the future is dropped.
pub(super) async fn next_batch(queue: &mut mpsc::Receiver<Waiting>) -> Option<Vec<Waiting>> {
    let first = queue.recv().await?;
    let mut bytes = size(&first);
    let mut batch = vec![first];
    while batch.len() < COMMIT_DELIVERIES_MAX && bytes < COMMIT_BYTES_MAX {
        let Ok(next) = queue.try_recv() else { break };
        bytes += size(&next);
        batch.push(next);
    }
    Some(batch)
}

fn size(waiting: &Waiting) -> usize {
    waiting.arrivals.iter().map(|arrival| arrival.body.len()).sum()
}
