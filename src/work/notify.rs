//! Tells the team: the first dead letter, events that wait too long, a jump in duplicates.
//!
//! The one thing to get right: a jump in duplicates is told as an alarm about latency. Dropping them is no
//! success: the provider sends again because an answer came late.

use super::book::End;
use super::call::Caller;
use crate::config::NotifySettings;
use crate::provider::{Cancel, Timing};
use crate::record::SECOND_US;
use crate::store::{Store, inbox_health};
use anyhow::Result;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the inbox is looked at.
const LOOK: Duration = Duration::from_mins(1);
const HOUR_US: i64 = 3_600 * SECOND_US;

/// What is told, at most once an hour each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    DeadLetter,
    Waiting,
    Duplicates,
}

/// Tells of one store. What was told when is this process's own memory.
#[derive(Debug)]
pub struct Notifier<'a> {
    settings: &'a NotifySettings,
    store: Store,
    caller: Caller,
    timing: Timing,
    cancel: Cancel,
    told: Mutex<BTreeMap<Kind, i64>>,
    /// (when, duplicates in all), of the last hour and one before.
    seen: Mutex<VecDeque<(i64, u64)>>,
}

impl<'a> Notifier<'a> {
    /// A notifier, where a URL is set.
    ///
    /// # Errors
    /// When the system's root certificates cannot be read.
    pub fn new(
        settings: &'a NotifySettings,
        store: Store,
        timing: Timing,
        cancel: Cancel,
    ) -> Result<Option<Self>> {
        let Some(url) = &settings.url else { return Ok(None) };
        let caller = Caller::new(url.reveal(), CALL_TIMEOUT)?;
        let (told, seen) = (Mutex::default(), Mutex::default());
        Ok(Some(Self { settings, store, caller, timing, cancel, told, seen }))
    }

    /// Looks at the inbox every minute until asked to end.
    pub async fn run(&self) {
        while !self.cancel.is_cancelled() {
            if let Err(error) = self.look().await {
                tracing::error!("looking at the inbox's health: {error:#}");
            }
            tokio::select! {
                () = self.timing.sleep(LOOK) => {}
                () = self.cancel.cancelled() => {}
            }
        }
    }

    /// Tells of dead letters among what a batch ended as.
    pub async fn after(&self, ends: &[End]) {
        let dead: Vec<&End> = ends.iter().filter(|end| end.is_dead()).collect();
        let Some(first) = dead.first() else { return };
        let text = format!(
            "recon: {} event(s) became dead letters and are not tried again. The first: {}. \
             `recon inbox dead` lists them, `recon inbox retry EVENT --reason …` tries one again.",
            dead.len(),
            first.error
        );
        self.tell(Kind::DeadLetter, text).await;
    }

    /// Looks once.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn look(&self) -> Result<()> {
        let now_us = self.timing.now_us();
        let age_us = i64::try_from(self.settings.waiting_age.as_micros()).unwrap_or(i64::MAX);
        let health = inbox_health(&self.store, now_us.saturating_sub(age_us)).await?;
        let waiting: u64 = health.iter().map(|scope| scope.waiting_above_age).sum();
        if waiting > 0 {
            let minutes = self.settings.waiting_age.as_secs() / 60;
            let text = format!("recon: {waiting} event(s) wait for longer than {minutes} min to be applied.");
            self.tell(Kind::Waiting, text).await;
        }
        let duplicates = health.iter().map(|scope| scope.duplicates).sum();
        let more = self.more_than_an_hour_ago(now_us, duplicates);
        if more > self.settings.duplicates_per_hour {
            let text = format!(
                "recon: {more} repeated deliveries within an hour. This is an alarm about latency: providers send \
                 again what was not answered in time. Look at the receiver's answer times."
            );
            self.tell(Kind::Duplicates, text).await;
        }
        Ok(())
    }

    fn more_than_an_hour_ago(&self, now_us: i64, duplicates: u64) -> u64 {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push_back((now_us, duplicates));
        while seen.len() > 1 && seen[1].0 <= now_us.saturating_sub(HOUR_US) {
            seen.pop_front();
        }
        seen.front().map_or(0, |(_, before)| duplicates.saturating_sub(*before))
    }

    async fn tell(&self, kind: Kind, text: String) {
        #[derive(Serialize)]
        struct Body<'t> {
            text: &'t str,
        }
        let now_us = self.timing.now_us();
        {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.get(&kind).is_some_and(|last_us| now_us.saturating_sub(*last_us) < HOUR_US) {
                return;
            }
            told.insert(kind, now_us);
        }
        let body = serde_json::to_vec(&Body { text: &text }).unwrap_or_default();
        let error = match self.caller.post(&[("content-type", "application/json")], body).await {
            Ok(200..=299) => return,
            Ok(status) => format!("answered {status}"),
            Err(error) => format!("{error:#}"),
        };
        // It is told again next time.
        self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(&kind);
        tracing::error!("a notification was not taken: {error}; it said: {text}");
    }
}
