//! One list of one account, read in several slices at once.
//!
//! The longest slice is split whenever fewer requests are under way than the limit could carry, so one slow
//! page never holds the limit idle. Records are written together with the slices as they stand, so a run
//! killed anywhere goes on at its open slices. The one thing to get right: only what a chain has proven is
//! closed, and a range that is not closed at the end is a gap with its cause.

use super::Stream;
use super::cancel::Cancel;
use super::chain::{Ask, Chain, PartState};
use super::client::Client;
use super::coverage::{Known, cover};
use super::fetch_error::FetchError;
use super::future::future_notes;
use super::list_page::{Record, list_path, read_page};
use super::pager::{Paged, RunContext};
use super::progress::StreamProgress;
use crate::record::{Coverage, SECOND_US, Scope, Window};
use crate::store::{PageRecord, Slice, SliceStatus, Store, StreamKey};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Records held in memory before they are written.
const BUFFER_RECORDS: usize = 1000;
/// Bytes held in memory before they are written.
const BUFFER_BYTES: usize = 8 * 1024 * 1024;
/// Requests under way for one stream, at most and at least.
const REQUESTS_MAX: u64 = 100;
const REQUESTS_MIN: u64 = 4;
/// A queue of this much time stands ready besides what is under way, so that a write delays nobody.
const READY: Duration = Duration::from_millis(500);
/// The answer to one request of one chain, and when it was asked for (Unix µs).
type Fetched = (usize, Result<(Vec<Record>, bool, i64), FetchError>);

/// One stream of one account.
pub(super) struct StreamPager {
    store: Store,
    client: Client,
    key: StreamKey,
    stream: Stream,
    window: Window,
    run: RunContext,
    /// Raised when another stream failed.
    stopped: Cancel,
    requests_per_second: u32,
    write_turn: Arc<tokio::sync::Mutex<()>>,
    /// First second that is read.
    floor: i64,
    chains: Vec<Chain>,
    in_flight: Vec<bool>,
    fetches: JoinSet<Fetched>,
    writes: JoinSet<Result<()>>,
    buffer: BTreeMap<String, PageRecord>,
    buffer_bytes: usize,
    /// Oldest second that any chain saw.
    oldest: Option<i64>,
    /// Why reading stopped early, else empty.
    unread: &'static str,
}

impl StreamPager {
    pub(super) fn new(
        (store, client): (Store, Client),
        (scope, requests_per_second): (Scope, u32),
        stream: Stream,
        window: Window,
        run: RunContext,
        (stopped, write_turn): (Cancel, Arc<tokio::sync::Mutex<()>>),
    ) -> Self {
        let key = StreamKey { scope, stream: stream.name.to_owned(), run_id: run.run_id.clone() };
        Self {
            store,
            client,
            key,
            stream,
            window,
            run,
            stopped,
            requests_per_second,
            write_turn,
            floor: 0,
            chains: Vec::new(),
            in_flight: Vec::new(),
            fetches: JoinSet::new(),
            writes: JoinSet::new(),
            buffer: BTreeMap::new(),
            buffer_bytes: 0,
            oldest: None,
            unread: "",
        }
    }

    /// Reads the stream to its end, or as far as it can be read.
    pub(super) async fn run(mut self) -> Result<Paged> {
        let memory_from = self.memory_from_second();
        let from = ceil_second(self.window.from_us);
        let until = ceil_second(self.window.until_us);
        self.floor = from.max(memory_from.unwrap_or(from)).min(until);
        let mut progress = self.run.progress.stream(
            &self.key.scope,
            self.stream.name,
            until - self.floor,
            self.requests_per_second,
            self.client.timing().clone(),
        );
        if self.floor < until {
            self.open_chains(until).await?;
            let result = self.read(&mut progress).await;
            self.fetches.abort_all();
            // What was read is kept whatever ended the reading; its own error comes first.
            let written = match self.start_write().await {
                Ok(()) => self.await_write().await,
                Err(error) => Err(error),
            };
            result.and(written)?;
        }
        let notes = if self.unread.is_empty() {
            future_notes(&self.client, &self.key.scope, &self.stream, self.run.now_us).await?
        } else {
            Vec::new()
        };
        progress.finish();
        Ok(Paged { coverage: self.coverage(from, until).await?, notes })
    }

    /// First second that the provider still lists reliably.
    fn memory_from_second(&self) -> Option<i64> {
        Some(ceil_second(self.stream.listed_from_us(self.run.now_us)?))
    }

    /// Opens the window, less what this run (or the one that it resumes) has closed already.
    async fn open_chains(&mut self, until: i64) -> Result<()> {
        let mut known = self.store.slices(&self.key).await?;
        known.retain(|slice| slice.status == SliceStatus::Closed);
        let mut upper = until;
        for slice in known {
            let from = (slice.from_us / SECOND_US).max(self.floor);
            let to = (slice.until_us / SECOND_US).min(upper);
            if from >= to {
                continue;
            }
            if to < upper {
                self.add(Chain::new(to, upper, self.floor));
            }
            self.add(Chain::closed(from, to, self.floor, slice.pages, slice.records));
            upper = from;
        }
        if self.floor < upper {
            self.add(Chain::new(self.floor, upper, self.floor));
        }
        self.start_write().await
    }

    fn add(&mut self, chain: Chain) {
        self.chains.push(chain);
        self.in_flight.push(false);
    }

    async fn read(&mut self, progress: &mut StreamProgress) -> Result<()> {
        loop {
            self.fill();
            if self.fetches.is_empty() && !self.reopen_contradicted() {
                return Ok(());
            }
            let (cancel, stopped) = (self.run.cancel.clone(), self.stopped.clone());
            tokio::select! {
                biased;
                () = cancel.cancelled() => { self.unread = "interrupted"; return Ok(()); }
                () = stopped.cancelled() => { self.unread = "interrupted"; return Ok(()); }
                Some(done) = self.fetches.join_next() => {
                    let (index, answer) = done.context("a request's task ended early")?;
                    self.in_flight[index] = false;
                    self.take(index, answer)?;
                }
            }
            let left = self.chains.iter().map(Chain::seconds_left).sum();
            progress.page(self.chains.iter().map(|chain| chain.pages).sum(), left);
            if !self.unread.is_empty() {
                return Ok(());
            }
            if self.buffer.len() >= BUFFER_RECORDS || self.buffer_bytes >= BUFFER_BYTES {
                self.start_write().await?;
            }
        }
    }

    /// Sends what can be sent, splitting the longest slices while the limit has room.
    fn fill(&mut self) {
        let latency = self.client.latency().saturating_add(READY);
        let under_way_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        let wanted = u64::from(self.requests_per_second).saturating_mul(under_way_ms) / 1000;
        let wanted = usize::try_from(wanted.clamp(REQUESTS_MIN, REQUESTS_MAX)).unwrap_or(1);
        loop {
            for index in 0..self.chains.len() {
                if self.fetches.len() >= wanted {
                    return;
                }
                if let Some(ask) = self.chains[index].ask().filter(|_| !self.in_flight[index]) {
                    self.in_flight[index] = true;
                    self.fetch(index, &ask);
                }
            }
            let longest = self.chains.iter_mut().max_by_key(|chain| chain.pages_left());
            let Some(older) = longest.and_then(Chain::split) else { return };
            self.add(older);
        }
    }

    fn fetch(&mut self, index: usize, ask: &Ask) {
        let (client, stream) = (self.client.clone(), self.stream);
        let account = Arc::clone(&self.key.scope.account);
        let path = list_path(&stream, ask);
        self.fetches.spawn(async move {
            let answer = client.get_at(stream.name, &path, &account).await.and_then(|(body, asked_at_us)| {
                let (records, has_more) = read_page(&body).map_err(|problem| FetchError::Shape {
                    what: format!("fetch {}: GET {path}", stream.name),
                    problem,
                })?;
                Ok((records, has_more, asked_at_us))
            });
            (index, answer)
        });
    }

    fn take(&mut self, index: usize, answer: Result<(Vec<Record>, bool, i64), FetchError>) -> Result<()> {
        let (records, has_more, asked_at_us) = match answer {
            Ok(page) => page,
            Err(FetchError::CursorLost { .. }) => {
                self.chains[index].on_cursor_lost();
                return Ok(());
            }
            Err(error) => {
                let cause = match &error {
                    FetchError::Forbidden { .. } => "no_permission",
                    FetchError::Budget { .. } => "budget",
                    FetchError::RateLimited { .. } => "rate_limited",
                    FetchError::Locked { .. } => "locked",
                    _ => return Err(error.into()),
                };
                tracing::warn!(stream = self.stream.name, cause, hint = error.hint(), "{error}");
                self.unread = cause;
                return Ok(());
            }
        };
        let chain = &mut self.chains[index];
        let rows: Vec<(&str, i64)> = records.iter().map(|row| (row.id.as_str(), row.created)).collect();
        let kept = chain.on_page(&rows, has_more);
        for (record, is_kept) in records.into_iter().zip(kept) {
            if !is_kept {
                continue;
            }
            self.oldest = Some(self.oldest.map_or(record.created, |oldest| oldest.min(record.created)));
            self.buffer_bytes += record.body.len();
            let created_us = record.created.saturating_mul(SECOND_US);
            let row = PageRecord { record_id: record.id, created_us, asked_at_us, body: record.body };
            self.buffer.insert(row.record_id.clone(), row);
        }
        Ok(())
    }

    /// A list that ended earlier than another slice of the same list shows is asked again.
    fn reopen_contradicted(&mut self) -> bool {
        let Some(oldest) = self.oldest else { return false };
        self.chains.iter_mut().filter_map(|chain| chain.contradicted_by(oldest).then_some(())).count() > 0
    }

    /// Writes the buffer and the slices as they stand, beside what is being read. One write at a time.
    async fn start_write(&mut self) -> Result<()> {
        self.await_write().await?;
        let records: Vec<PageRecord> = std::mem::take(&mut self.buffer).into_values().collect();
        self.buffer_bytes = 0;
        let slices = self.slices(self.now_us());
        let (store, key, turn) = (self.store.clone(), self.key.clone(), Arc::clone(&self.write_turn));
        self.writes.spawn(async move {
            let _turn = turn.lock().await;
            store.write_page_batch(&key, &records, &slices).await
        });
        Ok(())
    }

    /// Now, Unix µs, and never before the run began.
    fn now_us(&self) -> i64 {
        self.run.now_us.max(self.client.timing().now_us())
    }

    async fn await_write(&mut self) -> Result<()> {
        while let Some(done) = self.writes.join_next().await {
            done.context("a write's task ended early")??;
        }
        Ok(())
    }

    fn slices(&self, now_us: i64) -> Vec<Slice> {
        let mut slices = Vec::new();
        for chain in &self.chains {
            for (index, part) in chain.parts().into_iter().enumerate() {
                let (status, cause) = match part.state {
                    PartState::Open => (SliceStatus::Open, ""),
                    PartState::Closed => (SliceStatus::Closed, ""),
                    PartState::Gap(cause) => (SliceStatus::Gap, cause),
                };
                let (pages, records) = if index == 0 { (chain.pages, chain.records) } else { (0, 0) };
                slices.push(Slice {
                    from_us: part.from * SECOND_US,
                    until_us: part.until * SECOND_US,
                    status,
                    pages,
                    records,
                    cause: cause.to_owned(),
                    closed_at_us: (status == SliceStatus::Closed).then_some(now_us),
                });
            }
        }
        slices
    }

    async fn coverage(&self, from: i64, until: i64) -> Result<Vec<Coverage>> {
        let known: Vec<Known> = self
            .chains
            .iter()
            .flat_map(|chain| {
                chain.parts().into_iter().enumerate().map(|(index, part)| Known {
                    from: part.from,
                    until: part.until,
                    state: part.state,
                    pages: if index == 0 { chain.pages } else { 0 },
                })
            })
            .collect();
        let bounds = (from, until, self.floor);
        let mut rows = cover(&self.key.scope, self.stream.name, self.window, bounds, known, self.unread);
        for row in &mut rows {
            row.records = self
                .store
                .count_records(&self.key.scope, self.stream.name, row.from_us, row.until_us)
                .await?;
        }
        Ok(rows)
    }
}

/// The first whole second that is not before an instant.
fn ceil_second(at_us: i64) -> i64 {
    at_us.div_euclid(SECOND_US) + i64::from(at_us.rem_euclid(SECOND_US) != 0)
}
