//! The worker's loop. Several workers, in one process or in many, may work side by side: claims and keys make that
//! right.
//!
//! The one thing to get right: a batch whose transaction fails is tried again one event at a time, so that a bad
//! event costs only itself.

use super::beside::book_beside;
use super::book::{Booking, End, Item, PARKED_LOOK, book, failed};
use super::decide::{Common, Plan, decide, short};
use super::fetch::{Asking, Fetched, fetch};
use super::read::{Meaning, Subject, read};
use super::tally::{Counting, Tally};
use crate::config::{Accounts, LimitSettings, ProviderSettings, Settings};
use crate::provider::stripe::{self, Reading};
use crate::provider::{Backoff, Cancel, Client, Timing};
use crate::record::{EventKey, InboxStatus, Scope, Window};
use crate::serve::Metrics;
use crate::store::work::{self, Claimed, Ending, NextAttempts, Pause};
use crate::store::{Database, LOCK_ATTEMPTS, Store, is_about_data, is_busy, resolve, save_aliases};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often the inbox is looked at while nothing is due.
const POLL: Duration = Duration::from_millis(500);
/// Longest pause while the store cannot be reached.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A worker has no end, so its client has no budget.
const NO_BUDGET: Duration = Duration::from_hours(24 * 365 * 100);
/// What one object may take to be answered for, while the others of its batch wait to be booked.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// What a claim may take to ask for, so that it is done before its events are due again.
const ASKING_SECONDS: u32 = 4;
/// Longest wait for a provider that does not answer, in delays of a first retry (10 s: 43 min).
const WAIT_MAX_FACTOR: u32 = 256;

/// Applies the events of one store.
#[derive(Debug)]
pub struct Worker<'a> {
    settings: &'a Settings,
    store: Store,
    clients: BTreeMap<String, (&'a ProviderSettings, Client)>,
    timing: Timing,
    cancel: Cancel,
    metrics: Option<Arc<Metrics>>,
    random: RandomState,
    /// The minute in which events that wait too long were looked for.
    looked: AtomicU64,
}

/// When an event is due again after 1, 2, 3, 4 and more attempts: `delay` grown fourfold with each, of which
/// between half and all is waited. `jitter` is any random number.
#[must_use]
pub fn next_attempts(now_us: i64, delay: Duration, jitter: u64) -> NextAttempts {
    [1, 4, 16, 64, 256].map(|factor| {
        let permille = 500 + u32::try_from(jitter % 501).unwrap_or(0);
        let wait = delay.saturating_mul(factor).saturating_mul(permille) / 1000;
        now_us.saturating_add(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX))
    })
}

impl<'a> Worker<'a> {
    /// A worker on an open store. `timing` is its clock, `cancel` ends it after the batch at hand.
    ///
    /// # Errors
    /// When the system's root certificates cannot be read.
    pub fn new(settings: &'a Settings, store: Store, timing: Timing, cancel: Cancel) -> Result<Self> {
        // One try: an event that is not answered for is tried again itself, and holds nobody up.
        let limits = LimitSettings { run_budget: NO_BUDGET, attempts_max: 1, ..settings.limits.clone() };
        let mut clients = BTreeMap::new();
        for provider in &settings.providers {
            let client = Client::with_timing(provider, &limits, timing.clone(), Backoff::DEFAULT)?
                .sharing(&store, provider)
                .answered_within(ANSWER_TIMEOUT);
            clients.insert(provider.name.clone(), (provider, client));
        }
        Ok(Self {
            settings,
            store,
            clients,
            timing,
            cancel,
            metrics: None,
            random: RandomState::new(),
            looked: AtomicU64::new(0),
        })
    }

    /// The same worker, that counts into these.
    #[must_use]
    pub fn counting(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Works until asked to end; with `drain` until nothing is due. A store that cannot be reached is waited for,
    /// unless draining. `after` is given what each batch ended as.
    ///
    /// # Errors
    /// When draining and the store fails.
    pub async fn run(&self, drain: bool, mut after: impl AsyncFnMut(&[End])) -> Result<Tally> {
        let mut counting = Counting::new(drain);
        let mut pause = POLL;
        let mut in_hand = Arc::new(Vec::new());
        while !in_hand.is_empty() || !self.cancel.is_cancelled() {
            let (ended, next) = self.turn(&in_hand).await;
            let done = std::mem::take(&mut in_hand);
            let was_due = !done.is_empty();
            if let Ok(ends) = &ended {
                counting.count(&done, ends);
                if was_due {
                    after(&ends.iter().flatten().cloned().collect::<Vec<End>>()).await;
                }
            }
            let error = match (ended, next) {
                (Ok(_), Ok(next)) => {
                    pause = POLL;
                    in_hand = Arc::new(next);
                    None
                }
                (Err(error), next) => {
                    in_hand = Arc::new(next.unwrap_or_default());
                    Some(error)
                }
                (Ok(_), Err(error)) => Some(error),
            };
            let wait = match error {
                Some(error) if drain => return Err(error),
                Some(error) => {
                    tracing::error!("working on the inbox: {error:#}");
                    pause = (pause * 2).min(PAUSE_MAX);
                    pause
                }
                None if was_due || !in_hand.is_empty() => continue,
                None if drain => break,
                None => POLL,
            };
            tokio::select! {
                () = self.timing.sleep(wait) => {}
                () = self.cancel.cancelled() => {}
            }
        }
        Ok(counting.tally())
    }

    /// Ends what is in hand and claims what comes next: at the same time where writers do not wait for one another,
    /// so that the database is never idle while events are read. Either may fail without the other.
    async fn turn(&self, in_hand: &Arc<Vec<Item>>) -> (Result<Vec<Option<End>>>, Result<Vec<Item>>) {
        match self.store.database() {
            Database::Postgres => tokio::join!(self.end(in_hand), self.next()),
            Database::Sqlite => (self.end(in_hand).await, self.next().await),
        }
    }

    /// Claims what is due, and what is to be done about it. Nothing once asked to end.
    async fn next(&self) -> Result<Vec<Item>> {
        let mut claimed = if self.cancel.is_cancelled() { Vec::new() } else { self.claim().await? };
        if claimed.is_empty() && !self.cancel.is_cancelled() && self.bring_back().await? {
            claimed = self.claim().await?;
        }
        if claimed.is_empty() { Ok(Vec::new()) } else { self.plan(claimed).await }
    }

    async fn end(&self, items: &Arc<Vec<Item>>) -> Result<Vec<Option<End>>> {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let ends = self.book(items).await?;
        for (item, end) in items.iter().zip(&ends) {
            if let Some(end) = end {
                self.tell(&item.claimed, end);
            }
        }
        Ok(ends)
    }

    async fn claim(&self) -> Result<Vec<Claimed>> {
        let mut attempt = 1;
        loop {
            match self.try_claim().await {
                Err(error) if attempt < LOCK_ATTEMPTS && is_busy(&error) => attempt += 1,
                other => return other,
            }
        }
    }

    /// Makes what a clock that was ahead put off due now; whether there was any. Looks once a minute.
    async fn bring_back(&self) -> Result<bool> {
        let minute = self.timing.elapsed().as_secs() / 60 + 1;
        if self.looked.swap(minute, Ordering::Relaxed) == minute {
            return Ok(false);
        }
        let longest = (self.settings.work.retry_delay * WAIT_MAX_FACTOR).max(PARKED_LOOK) * 2;
        let longest_us = i64::try_from(longest.as_micros()).unwrap_or(i64::MAX);
        let mut tx = self.store.begin_write().await?;
        let count = work::bring_back(&mut tx, longest_us).await?;
        tx.commit().await.context("commit what was brought back")?;
        if count > 0 {
            tracing::warn!(
                "{count} events were put off for longer than any wait, under a clock that was ahead: due now"
            );
        }
        Ok(count > 0)
    }

    async fn try_claim(&self) -> Result<Vec<Claimed>> {
        let now_us = self.timing.now_us();
        let next = next_attempts(now_us, self.settings.work.retry_delay, self.random.hash_one(now_us));
        let mut tx = self.store.begin().await?;
        let claimed = work::claim(&mut tx, &next, now_us, self.claim_count()).await?;
        tx.commit().await.context("commit a claim")?;
        Ok(claimed)
    }

    /// Where objects are asked for, no more than can be asked for before they are due again.
    fn claim_count(&self) -> i64 {
        let work = &self.settings.work;
        if work.fetch.as_ref().is_some_and(BTreeSet::is_empty) {
            return work.batch;
        }
        let rates = self.settings.providers.iter().map(|provider| provider.requests_per_second);
        let askable = rates.min().map_or(i64::MAX, |rate| i64::from(rate.saturating_mul(ASKING_SECONDS)));
        work.batch.min(askable.max(1))
    }

    /// What is to be done about each claimed event.
    async fn plan(&self, claimed: Vec<Claimed>) -> Result<Vec<Item>> {
        let now_us = self.timing.now_us();
        let mut by_scope: BTreeMap<Scope, Vec<Claimed>> = BTreeMap::new();
        for claimed in claimed {
            by_scope.entry(claimed.key.scope.clone()).or_default().push(claimed);
        }
        let mut items = Vec::new();
        for (scope, claimed) in by_scope {
            match self.in_scope(&scope) {
                Err(reason) => {
                    items.extend(
                        claimed.into_iter().map(|claimed| Item { claimed, plan: Plan::Ignore(reason) }),
                    );
                }
                Ok((provider, client)) => {
                    let basis = self.settings.report.basis;
                    let always = Window { from_us: i64::MIN, until_us: i64::MAX };
                    let reading =
                        Reading { wanted: None, ..Reading::of(provider, scope, always, basis, now_us) };
                    items.extend(self.plan_scope(client, &reading, claimed, now_us).await?);
                }
            }
        }
        Ok(items)
    }

    /// The provider of a scope, or why its events are not applied.
    fn in_scope(&self, scope: &Scope) -> Result<(&ProviderSettings, &Client), &'static str> {
        let Some((provider, client)) = self.clients.get(&*scope.provider) else {
            let is_endpoint = self.settings.endpoints.iter().any(|endpoint| endpoint.name == *scope.provider);
            return Err(if is_endpoint { "no_effects_for_this_provider" } else { "not_configured" });
        };
        let is_account = match &provider.accounts {
            Accounts::All => true,
            Accounts::Named(names) => names.iter().any(|name| *name == *scope.account),
        };
        if is_account && provider.mode == *scope.mode { Ok((provider, client)) } else { Err("wrong_scope") }
    }

    async fn plan_scope(
        &self,
        client: &Client,
        reading: &Reading,
        claimed: Vec<Claimed>,
        now_us: i64,
    ) -> Result<Vec<Item>> {
        let meanings: Vec<Meaning> =
            claimed.iter().map(|claimed| read(reading, self.settings.work.fetch.as_ref(), claimed)).collect();
        let subjects: Vec<&Subject> = meanings
            .iter()
            .filter_map(
                |meaning| if let Meaning::Concerns(subject) = meaning { Some(&**subject) } else { None },
            )
            .collect();
        let aliases: Vec<_> = subjects.iter().flat_map(|subject| subject.aliases.iter().cloned()).collect();
        if !aliases.is_empty() {
            save_aliases(&self.store, &aliases).await?;
        }
        let asked: Vec<&Subject> = subjects.iter().copied().filter(|subject| subject.is_fetched).collect();
        let asking = Asking { store: &self.store, client, reading, cancel: &self.cancel };
        let fetched = if asked.is_empty() { Ok(Fetched::default()) } else { fetch(asking, &asked).await };
        let own_roots: BTreeSet<String> = subjects
            .iter()
            .filter(|subject| !subject.is_fetched && !stripe::is_final_root(&subject.root_id))
            .map(|subject| subject.root_id.clone())
            .collect();
        let roots = resolve(&self.store, &reading.scope, &own_roots, stripe::is_final_root).await?;
        let common = Common { reading, now_us };
        let mut items = Vec::with_capacity(claimed.len());
        for (claimed, meaning) in claimed.into_iter().zip(meanings) {
            let plan = match meaning {
                Meaning::Ignored(reason) => Plan::Ignore(reason),
                Meaning::Dead(error) => Plan::Bury(error),
                Meaning::Concerns(subject) if !subject.is_fetched => {
                    let root = roots.get(&subject.root_id).map_or(&subject.root_id, |target| &target.root_id);
                    decide(common, &claimed.key, &claimed.replayed_for, &subject, root, None)
                }
                Meaning::Concerns(subject) => match &fetched {
                    Ok(known) => {
                        let root = known.root_of(&subject.root_id);
                        decide(common, &claimed.key, &claimed.replayed_for, &subject, root, Some(known))
                    }
                    Err(error) => Plan::Wait(short(error)),
                },
            };
            // Whoever was not asked for because the work ends is due again; that never buries it.
            if !(self.cancel.is_cancelled() && matches!(plan, Plan::Wait(_))) {
                items.push(Item { claimed, plan });
            }
        }
        Ok(items)
    }

    async fn book(&self, items: &Arc<Vec<Item>>) -> Result<Vec<Option<End>>> {
        let error = match self.book_all(items).await {
            Ok(ends) => return Ok(ends),
            Err(error) if !is_about_data(&error) => return Err(error),
            Err(error) => error,
        };
        tracing::warn!("a batch of {} events failed, each is tried alone: {error:#}", items.len());
        let mut ends = Vec::with_capacity(items.len());
        for item in items.iter() {
            match self.book_some(&[item]).await {
                Ok(alone) => ends.extend(alone),
                Err(error) if !is_about_data(&error) => return Err(error),
                Err(error) => ends.push(Some(self.note_failure(item, &error).await?)),
            }
        }
        Ok(ends)
    }

    async fn book_some(&self, items: &[&Item]) -> Result<Vec<Option<End>>> {
        let mut attempt = 1;
        loop {
            match book(self.booking(), items).await {
                Err(error) if attempt < LOCK_ATTEMPTS && is_busy(&error) => attempt += 1,
                other => return other,
            }
        }
    }

    async fn book_all(&self, items: &Arc<Vec<Item>>) -> Result<Vec<Option<End>>> {
        let mut attempt = 1;
        loop {
            match book_beside(self.booking(), items).await {
                Err(error) if attempt < LOCK_ATTEMPTS && is_busy(&error) => attempt += 1,
                other => return other,
            }
        }
    }

    fn booking(&self) -> Booking<'_> {
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        let retry_delay = self.settings.work.retry_delay;
        Booking {
            store: &self.store,
            now_us: self.timing.now_us(),
            attempts_max: self.settings.work.attempts_max,
            park_max_us: micros(self.settings.work.park_max),
            pause: Pause { min_us: micros(retry_delay), max_us: micros(retry_delay * WAIT_MAX_FACTOR) },
            has_outbox: self.settings.outbox.url.is_some(),
        }
    }

    /// An event whose transaction fails even alone.
    async fn note_failure(&self, item: &Item, error: &anyhow::Error) -> Result<End> {
        let booking = self.booking();
        let end = failed(booking, &item.claimed, &short(error));
        let keys: [&EventKey; 1] = [&item.claimed.key];
        let mut tx = self.store.begin_write().await?;
        if end.is_dead() {
            let ending = Ending { status: InboxStatus::Dead, error: &end.error, parked_for: "", due_us: 0 };
            work::finish(&mut tx, &keys, ending, booking.now_us).await?;
        } else {
            work::fail(&mut tx, &keys, &end.error).await?;
        }
        tx.commit().await.context("note a failed event")?;
        Ok(end)
    }

    fn tell(&self, claimed: &Claimed, end: &End) {
        let event = &claimed.key.event_id;
        if end.is_dead() {
            tracing::error!(scope = %claimed.key.scope, event, "dead letter {event}: {}", end.error);
        } else if !end.error.is_empty() {
            tracing::info!(scope = %claimed.key.scope, event, status = end.status, "{event}: {}", end.error);
        }
        let Some(metrics) = &self.metrics else { return };
        if end.status != InboxStatus::Received.as_str() {
            metrics.ended(end.status);
        }
        if !matches!(end.status.parse(), Ok(InboxStatus::Received | InboxStatus::Parked)) {
            metrics.completion.observe_us(self.timing.now_us().saturating_sub(claimed.received_at_us));
        }
    }
}
