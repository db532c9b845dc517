//! From verified deliveries to committed rows. Deliveries that arrive together share one commit: while one
//! commit is under way, the next ones gather.
//!
//! One task writes. It answers a delivery only when its rows are safe. A store that fails once is left to a
//! task beside it, which asks until it is there again; meanwhile nobody waits for it in vain. A delivery that
//! the store refuses costs only itself.

use super::intake::{Unavailable, Waiting, Writing, next_batch};
use super::metrics::{Metrics, RefusedToday};
use super::spill::Spill;
use crate::config::StoreUrl;
use crate::record::EventKey;
use crate::store::arrivals::{Arrival, Filed, file_arrivals};
use crate::store::{Access, Database, Store, add_refused, is_about_data, is_busy};
use crate::telemetry;
use anyhow::{Context, Result};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// Times that a commit is begun again because another writer was in the way.
const COMMIT_ATTEMPTS: u32 = 3;
/// How long a store that failed is left alone before it is asked again.
const REST: Duration = Duration::from_millis(500);
/// How long a store may take to say that it is there.
const ASKING: Duration = Duration::from_secs(5);
/// After which time it is told again that a store is away for the same reason.
const TELLING: Duration = Duration::from_mins(1);
/// How often counts of refused deliveries are written down.
const COUNTING: Duration = Duration::from_secs(5);

/// Why nothing was committed.
enum Failed {
    /// The store cannot be reached, or has no room or no time.
    Down,
    /// The store works, and refuses something among these deliveries.
    Refused(anyhow::Error),
}

pub(super) struct Writer {
    writing: Writing,
    metrics: Arc<Metrics>,
    store: Option<Store>,
    /// While there is no store: whoever asks for it.
    asking: Option<JoinHandle<Store>>,
}

impl Writer {
    pub fn new(writing: Writing, metrics: Arc<Metrics>) -> Self {
        if let Some(spill) = &writing.spill {
            metrics.set_spill_usable(true);
            metrics.set_spill_files(spill.waiting_files());
            metrics.set_spill_unreadable(spill.unreadable_files());
        }
        Self { writing, metrics, store: None, asking: None }
    }

    /// Writes until nobody can hand over anything any more, and all of it is written.
    pub async fn run(mut self, mut queue: mpsc::Receiver<Waiting>) {
        self.asking = Some(self.ask(Duration::ZERO));
        // A store that is there is reached before the first delivery is judged by its absence.
        if let Ok(store) = timeout(self.writing.commit_timeout, reached(&mut self.asking)).await {
            self.reached(store);
        }
        let mut counting = interval(COUNTING);
        counting.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // Whichever is ready, in turns that chance decides: neither starves the other.
            tokio::select! {
                batch = next_batch(&mut queue) => match batch {
                    Some(batch) => self.take(batch).await,
                    None => break,
                },
                store = reached(&mut self.asking) => self.reached(store),
                () = std::future::ready(()), if self.has_to_bring_back() => self.bring_back().await,
                _ = counting.tick() => self.write_down_refused().await,
            }
        }
        self.write_down_refused().await;
        if let Some(asking) = self.asking.take() {
            asking.abort();
        }
        if let Some(store) = self.store.take()
            && timeout(REST, store.close()).await.is_err()
        {
            tracing::debug!("the store's connections were not closed in time");
        }
    }

    fn ask(&self, rest: Duration) -> JoinHandle<Store> {
        tokio::spawn(until_reached(self.writing.store_url.clone(), rest))
    }

    fn reached(&mut self, store: Option<Store>) {
        match store {
            Some(store) => {
                tracing::info!("the store is reached");
                self.asking = None;
                if store.database() == Database::Sqlite {
                    tokio::spawn(shorten_often(store.clone()));
                }
                self.store = Some(store);
                self.metrics.set_store_up(true);
            }
            // Whoever asked ended early.
            None => self.asking = Some(self.ask(REST)),
        }
    }

    fn lose_store(&mut self, error: &anyhow::Error) {
        tracing::error!("the store does not take deliveries: {}", telemetry::told(error));
        self.metrics.set_store_up(false);
        if let Some(store) = self.store.take() {
            // Closing waits for what is under way.
            tokio::spawn(async move { store.close().await });
        }
        self.asking = Some(self.ask(REST));
    }

    /// One commit for all that wait, or one spill file.
    async fn take(&mut self, waiting: Vec<Waiting>) {
        let mut arrivals = Vec::with_capacity(waiting.len());
        let mut askers = Vec::with_capacity(waiting.len());
        for one in waiting {
            let start = arrivals.len();
            arrivals.extend(one.arrivals);
            askers.push((start..arrivals.len(), one.answer, one.memory));
        }
        let deliveries: Vec<Range<usize>> = askers.iter().map(|(range, ..)| range.clone()).collect();
        let filed = self.file_each(&arrivals, &deliveries).await;
        for ((_, answer, memory), filed) in askers.into_iter().zip(filed) {
            // Whoever hung up comes again, and finds the event there.
            drop(answer.send(filed));
            drop(memory);
        }
    }

    /// Files deliveries, given as ranges of `arrivals`: together, or in ever smaller parts while the store
    /// refuses something among them.
    async fn file_each(
        &mut self,
        arrivals: &[Arrival],
        deliveries: &[Range<usize>],
    ) -> Vec<Result<Vec<Filed>, Unavailable>> {
        let mut answers: Vec<Result<Vec<Filed>, Unavailable>> = Vec::with_capacity(deliveries.len());
        let mut parts = vec![deliveries];
        while let Some(part) = parts.pop() {
            let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
            let of_part = &arrivals[first.start..last.end];
            match self.commit(of_part).await {
                Ok(filed) => {
                    self.count(of_part, &filed);
                    let place = |range: &Range<usize>| range.start - first.start..range.end - first.start;
                    answers.extend(part.iter().map(|range| Ok(filed[place(range)].to_vec())));
                }
                Err(Failed::Down) => {
                    let spilled = self.spill(of_part).await;
                    answers.extend(part.iter().map(|range| match spilled {
                        // Whether they are new shows when they come back.
                        Ok(()) => Ok(vec![Filed::New; range.len()]),
                        Err(why) => Err(why),
                    }));
                }
                Err(Failed::Refused(error)) if part.len() == 1 => {
                    tracing::error!("the store refuses a delivery: {error:#}");
                    answers.push(Err(Unavailable::Refused));
                }
                Err(Failed::Refused(_)) => {
                    let (left, right) = part.split_at(part.len() / 2);
                    parts.extend([right, left]);
                }
            }
        }
        answers
    }

    async fn commit(&mut self, arrivals: &[Arrival]) -> Result<Vec<Filed>, Failed> {
        let Some(store) = &self.store else { return Err(Failed::Down) };
        let limit = self.writing.commit_timeout;
        let error = match timeout(limit, commit(store, arrivals)).await {
            Ok(Ok(filed)) => return Ok(filed),
            Ok(Err(error)) if is_about_data(&error) => return Err(Failed::Refused(error)),
            Ok(Err(error)) => error,
            Err(_) => anyhow::anyhow!("it did not answer within {limit:?}"),
        };
        self.lose_store(&error);
        Err(Failed::Down)
    }

    fn count(&self, arrivals: &[Arrival], filed: &[Filed]) {
        for (arrival, filed) in arrivals.iter().zip(filed) {
            let became = match filed {
                Filed::New => "new",
                Filed::Duplicate => "duplicate",
                Filed::Conflicting => "conflicting",
            };
            if *filed == Filed::Conflicting {
                let EventKey { scope, event_id } = &arrival.key;
                tracing::warn!(
                    provider = &*scope.provider,
                    event_id,
                    "an event came again with other bytes, which are kept beside the first and never applied: \
                     `recon inbox show` names them"
                );
            }
            self.metrics.delivery(&arrival.key.scope.provider, became);
        }
    }

    async fn spill(&self, arrivals: &[Arrival]) -> Result<(), Unavailable> {
        let Some(spill) = &self.writing.spill else { return Err(Unavailable::StoreDown) };
        let kept = spill.keep(arrivals).await;
        self.metrics.set_spill_usable(kept.is_ok());
        match kept {
            Ok(()) => {
                self.metrics.spilled(arrivals.len());
                Ok(())
            }
            Err(error) => {
                tracing::error!("deliveries could not be spilled: {error:#}");
                Err(Unavailable::StoreDown)
            }
        }
    }

    fn has_to_bring_back(&self) -> bool {
        self.store.is_some() && self.metrics.spill_files() > 0
    }

    /// Moves the oldest spilled deliveries into the store, as many as one commit takes.
    async fn bring_back(&mut self) {
        let Some(spill) = self.writing.spill.clone() else { return };
        let batch = match spill.oldest().await {
            Ok(batch) => batch,
            Err(error) => {
                tracing::error!("the spill folder cannot be read: {error:#}");
                // Looked at again when the next delivery is spilled, or with the next start.
                self.metrics.set_spill_usable(false);
                self.metrics.set_spill_files(0);
                return;
            }
        };
        if let Some(stored) = self.store_spilled(&spill, &batch.arrivals).await {
            self.metrics.brought_back(stored);
            if let Err(error) = spill.remove(&batch).await {
                tracing::error!("a spilled file that is stored by now cannot be removed: {error:#}");
                self.metrics.set_spill_usable(false);
                self.metrics.set_spill_files(0);
                return;
            }
        }
        self.metrics.set_spill_unreadable(spill.unreadable_files());
        self.metrics.set_spill_files(spill.waiting_files());
    }

    /// How many were stored; `None` when the files must stay. What the store refuses is set aside.
    async fn store_spilled(&mut self, spill: &Spill, arrivals: &[Arrival]) -> Option<usize> {
        let mut refused = Vec::new();
        let mut parts = vec![arrivals];
        while let Some(part) = parts.pop() {
            match self.commit(part).await {
                Ok(filed) => self.count(part, &filed),
                Err(Failed::Down) => return None,
                Err(Failed::Refused(error)) if part.len() == 1 => {
                    tracing::error!("the store refuses a spilled delivery, which is set aside: {error:#}");
                    refused.extend_from_slice(part);
                }
                Err(Failed::Refused(_)) => {
                    let (left, right) = part.split_at(part.len() / 2);
                    parts.extend([right, left]);
                }
            }
        }
        if !refused.is_empty()
            && let Err(error) = spill.set_aside(&refused).await
        {
            tracing::error!("refused deliveries could not be set aside: {error:#}");
            return None;
        }
        Some(arrivals.len() - refused.len())
    }

    /// Counts of refused deliveries outlive the process; those that cannot be written wait.
    async fn write_down_refused(&mut self) {
        let Some(store) = &self.store else { return };
        let counted = self.metrics.take_refused();
        if counted.is_empty() {
            return;
        }
        let written = timeout(self.writing.commit_timeout, write_refused(store, &counted)).await;
        let error = match written {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(_) => anyhow::anyhow!("the store did not answer in time"),
        };
        tracing::debug!("refused deliveries are counted later: {error:#}");
        self.metrics.put_back_refused(counted);
    }
}

/// `None` when the task ended early. Never ready while nobody asks.
async fn reached(asking: &mut Option<JoinHandle<Store>>) -> Option<Store> {
    match asking {
        Some(asking) => asking.await.ok(),
        None => std::future::pending().await,
    }
}

/// Asks until the store is there and can be written to.
async fn until_reached(url: StoreUrl, rest: Duration) -> Store {
    tokio::time::sleep(rest).await;
    let mut told: Option<(String, Instant)> = None;
    loop {
        let why = match timeout(ASKING, reach(&url)).await {
            Ok(Ok(store)) => return store,
            Ok(Err(error)) => telemetry::told(&error),
            Err(_) => format!("it does not answer within {ASKING:?}"),
        };
        if told.as_ref().is_none_or(|(known, at)| *known != why || at.elapsed() > TELLING) {
            tracing::warn!("the store cannot be reached: {why}");
            told = Some((why, Instant::now()));
        }
        tokio::time::sleep(REST).await;
    }
}

async fn reach(url: &StoreUrl) -> Result<Store> {
    let store = Store::open(url, Access::ReadWrite).await?;
    let tx = store.begin().await?;
    tx.rollback().await.context("end a transaction that only asked")?;
    Ok(store)
}

/// Beside the commits, so that none of them has to do it for all before. Ends with the store.
async fn shorten_often(store: Store) {
    while !store.pool().is_closed() {
        tokio::time::sleep(REST).await;
        if let Err(error) = store.shorten_log().await {
            tracing::debug!("later, then: {error:#}");
        }
    }
}

async fn commit(store: &Store, arrivals: &[Arrival]) -> Result<Vec<Filed>> {
    let mut attempt = 1;
    loop {
        match commit_once(store, arrivals).await {
            Err(error) if attempt < COMMIT_ATTEMPTS && is_busy(&error) => attempt += 1,
            other => return other,
        }
    }
}

/// The unique keys alone decide, so other writers need not be waited for.
async fn commit_once(store: &Store, arrivals: &[Arrival]) -> Result<Vec<Filed>> {
    let mut tx = store.begin().await?;
    let filed = file_arrivals(&mut tx, arrivals).await?;
    tx.commit().await.context("commit deliveries")?;
    Ok(filed)
}

async fn write_refused(store: &Store, counted: &RefusedToday) -> Result<()> {
    let mut tx = store.begin().await?;
    for ((provider, reason, day_us), deliveries) in counted {
        add_refused(&mut tx, provider, reason, *day_us, *deliveries).await?;
    }
    tx.commit().await.context("count refused deliveries")
}
