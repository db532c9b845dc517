//! Sends the messages that applied effects have written: at least once, each with its own key.
//!
//! The one thing to get right: an attempt is booked before the call. When the answer is lost, the message is
//! sent again under the same `Idempotency-Key`, and its receiver can tell.

use super::call::Caller;
use crate::config::OutboxSettings;
use crate::provider::{Cancel, Timing};
use crate::store::outbox::{self, DueMessage};
use crate::store::work::NextAttempts;
use crate::store::{LOCK_ATTEMPTS, Store, is_busy};
use anyhow::{Context, Result};
use futures_util::{StreamExt, stream};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Messages claimed at a time, and calls under way at once.
const CLAIM: i64 = 64;
const CALLS: usize = 8;
const POLL: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_secs(5);
/// Longest wait for the next attempt, in delays of a first retry.
const WAIT_MAX_FACTOR: u32 = 16;

/// Sends one store's messages.
#[derive(Debug)]
pub struct Sender<'a> {
    settings: &'a OutboxSettings,
    store: Store,
    caller: Caller,
    timing: Timing,
    cancel: Cancel,
    random: RandomState,
    /// The minute in which messages that wait too long were looked for.
    looked: AtomicU64,
}

/// What became of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Accepted by the receiver.
    pub sent: u64,
    /// Due again.
    pub failed: u64,
    /// Given up.
    pub dead: u64,
}

impl Sent {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.failed += other.failed;
        self.dead += other.dead;
    }
}

impl<'a> Sender<'a> {
    /// A sender, where a URL is set.
    ///
    /// # Errors
    /// When the system's root certificates cannot be read.
    pub fn new(
        settings: &'a OutboxSettings,
        store: Store,
        timing: Timing,
        cancel: Cancel,
    ) -> Result<Option<Self>> {
        let Some(url) = &settings.url else { return Ok(None) };
        let caller = Caller::new(url.reveal(), settings.timeout)?;
        Ok(Some(Self {
            settings,
            store,
            caller,
            timing,
            cancel,
            random: RandomState::new(),
            looked: AtomicU64::new(0),
        }))
    }

    /// Sends until asked to end; with `drain` until nothing is due.
    ///
    /// # Errors
    /// When draining and the store fails.
    pub async fn run(&self, drain: bool) -> Result<Sent> {
        let mut all = Sent::default();
        while !self.cancel.is_cancelled() {
            let wait = match self.step().await {
                Ok(Some(sent)) => {
                    all.add(sent);
                    continue;
                }
                Ok(None) if drain => break,
                Ok(None) => POLL,
                Err(error) if drain => return Err(error),
                Err(error) => {
                    tracing::error!("sending messages: {error:#}");
                    PAUSE
                }
            };
            tokio::select! {
                () = self.timing.sleep(wait) => {}
                () = self.cancel.cancelled() => {}
            }
        }
        Ok(all)
    }

    /// One batch. `None`: nothing was due.
    ///
    /// # Errors
    /// When the store fails; what was claimed is then due again.
    pub async fn step(&self) -> Result<Option<Sent>> {
        let mut due = self.claim().await?;
        if due.is_empty() && self.bring_back().await? {
            due = self.claim().await?;
        }
        if due.is_empty() {
            return Ok(None);
        }
        let mut results = stream::iter(due.iter().map(|message| self.send(message))).buffer_unordered(CALLS);
        let mut all = Sent::default();
        while let Some(sent) = results.next().await {
            all.add(sent?);
        }
        Ok(Some(all))
    }

    /// Makes what a clock that was ahead put off due now; whether there was any. Looks once a minute.
    async fn bring_back(&self) -> Result<bool> {
        let minute = self.timing.elapsed().as_secs() / 60 + 1;
        if self.looked.swap(minute, Ordering::Relaxed) == minute {
            return Ok(false);
        }
        let longest = self.settings.retry_delay * WAIT_MAX_FACTOR * 2;
        let longest_us = i64::try_from(longest.as_micros()).unwrap_or(i64::MAX);
        let mut tx = self.store.begin_write().await?;
        let count = outbox::bring_back(&mut tx, longest_us).await?;
        tx.commit().await.context("commit what was brought back")?;
        if count > 0 {
            tracing::warn!(
                "{count} messages were put off for longer than any wait, under a clock that was ahead: due now"
            );
        }
        Ok(count > 0)
    }

    async fn claim(&self) -> Result<Vec<DueMessage>> {
        let now_us = self.timing.now_us();
        let next = next_attempts(now_us, self.settings.retry_delay, self.random.hash_one(now_us));
        let mut tx = self.store.begin_write().await?;
        let due = outbox::claim(&mut tx, &next, now_us, CLAIM).await?;
        tx.commit().await.context("commit a claim")?;
        Ok(due)
    }

    async fn send(&self, message: &DueMessage) -> Result<Sent> {
        let headers =
            [("content-type", "application/json"), ("idempotency-key", message.idempotency_key.as_str())];
        let error = match self.caller.post(&headers, message.body.clone()).await {
            Ok(200..=299) => String::new(),
            Ok(status) => format!("answered {status}"),
            Err(error) => format!("{error:#}"),
        };
        let now_us = self.timing.now_us();
        let is_sent = error.is_empty();
        let is_dead = !is_sent && message.attempts >= self.settings.attempts_max;
        self.settle(message, is_sent.then_some(now_us), is_dead.then_some(now_us), &error).await?;
        if is_dead {
            let key = &message.idempotency_key;
            tracing::error!(key, "a message is given up after {} attempts: {error}", message.attempts);
        }
        Ok(Sent {
            sent: u64::from(is_sent),
            failed: u64::from(!is_sent && !is_dead),
            dead: u64::from(is_dead),
        })
    }

    async fn settle(
        &self,
        message: &DueMessage,
        sent_at_us: Option<i64>,
        dead_at_us: Option<i64>,
        error: &str,
    ) -> Result<()> {
        let mut attempt = 1;
        loop {
            let mut tx = self.store.begin().await?;
            let key = &message.idempotency_key;
            let settled = outbox::settle(&mut tx, key, sent_at_us, dead_at_us, error).await;
            let done = match settled {
                Ok(()) => tx.commit().await.context("commit what became of a message"),
                Err(error) => Err(error),
            };
            match done {
                Err(error) if attempt < LOCK_ATTEMPTS && is_busy(&error) => attempt += 1,
                other => return other,
            }
        }
    }
}

/// When a message is due again after 1, 2, 3, 4 and more attempts: `delay` doubled with each, of which between
/// half and all is waited.
fn next_attempts(now_us: i64, delay: Duration, jitter: u64) -> NextAttempts {
    [1, 2, 4, 8, WAIT_MAX_FACTOR].map(|factor| {
        let permille = 500 + u32::try_from(jitter % 501).unwrap_or(0);
        let wait = delay.saturating_mul(factor).saturating_mul(permille) / 1000;
        now_us.saturating_add(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX))
    })
}
