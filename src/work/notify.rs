//! Tells the team: the first dead letter, events that wait too long, a jump in duplicates.
//!
//! The one thing to get right: a jump in duplicates is told as an alarm about latency. Dropping them is no
//! success: the provider sends again because an answer came late.

use super::book::End;
use super::call::Caller;
use crate::config::NotifySettings;
use crate::provider::{Cancel, Timing};
use crate::record::SECOND_US;
use crate::store::notification;
use crate::store::{NewDead, Store, backlog, dead_since, repeated_deliveries};
use anyhow::Result;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the inbox is looked at.
const LOOK: Duration = Duration::from_mins(1);
const HOUR_US: i64 = 3_600 * SECOND_US;
/// How long nobody else tells what one is telling, should that one vanish: longer than the call takes.
const HOLD_US: i64 = 30 * SECOND_US;
/// How long what is being told may still take once asked to end; whoever starts next tells what was cut short.
const ENDING: Duration = Duration::from_secs(2);
/// How far the clocks of several machines may be apart. What was told later than that from now was told by a clock
/// that was wrong.
const SKEW_US: i64 = 60 * SECOND_US;

/// What is told, at most once an hour each, by all workers of a store together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    DeadLetter,
    Waiting,
    Duplicates,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::DeadLetter => "dead_letter",
            Self::Waiting => "waiting",
            Self::Duplicates => "duplicates",
        }
    }
}

/// Tells of one store. What was told when is in the store: neither a second worker nor a restart repeats it.
#[derive(Debug)]
pub struct Notifier<'a> {
    settings: &'a NotifySettings,
    store: Store,
    caller: Caller,
    timing: Timing,
    cancel: Cancel,
    /// (when, duplicates in all), of the last hour and one before.
    seen: Mutex<VecDeque<(i64, u64)>>,
    /// Rung where a batch had dead letters.
    bell: Notify,
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
        Ok(Some(Self {
            settings,
            store,
            caller,
            timing,
            cancel,
            seen: Mutex::default(),
            bell: Notify::new(),
        }))
    }

    /// Looks at the inbox every minute, and for dead letters whenever a batch had some, until asked to end. One
    /// notification at a time, beside the work: a URL that does not answer holds up nobody.
    pub async fn run(&self) {
        let mut is_whole = true;
        while !self.cancel.is_cancelled() {
            let looking =
                async { if is_whole { self.look().await } else { self.tell_of_dead_letters().await } };
            let looked = tokio::select! {
                looked = looking => looked,
                () = self.ending() => return,
            };
            if let Err(error) = looked {
                tracing::error!("looking at the inbox's health: {error:#}");
            }
            is_whole = tokio::select! {
                () = self.timing.sleep(LOOK) => true,
                () = self.bell.notified() => false,
                () = self.cancel.cancelled() => return,
            };
        }
    }

    async fn ending(&self) {
        self.cancel.cancelled().await;
        tokio::time::sleep(ENDING).await;
    }

    /// Has dead letters told at once, where a batch had some. Waits for nobody.
    pub fn after(&self, ends: &[End]) {
        if ends.iter().any(End::is_dead) {
            self.bell.notify_one();
        }
    }

    /// What became a dead letter within an hour after the last notification is told after that hour. What is told
    /// counts from when it was read: what died while it was being sent comes with the next.
    async fn tell_of_dead_letters(&self) -> Result<()> {
        let read_us = self.timing.now_us();
        let told_us = notification::told_at(&self.store, Kind::DeadLetter.as_str()).await?;
        // A clock that was ahead must not silence anything: the last hour is told once more.
        let is_wrong = told_us > read_us.saturating_add(SKEW_US);
        let told_us = if is_wrong { read_us.saturating_sub(HOUR_US) } else { told_us };
        let Some(NewDead { events, first_error }) = dead_since(&self.store, told_us).await? else {
            return Ok(());
        };
        let became = match events {
            1 => "1 event became a dead letter and is".to_owned(),
            _ => format!("{events} events became dead letters and are"),
        };
        let text = format!(
            "recon: {became} not tried again. The first: {first_error}. `recon inbox dead` lists them, \
             `recon inbox retry EVENT --reason …` tries one again."
        );
        self.tell(Kind::DeadLetter, text, read_us).await
    }

    /// Looks once.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn look(&self) -> Result<()> {
        self.tell_of_dead_letters().await?;
        let now_us = self.timing.now_us();
        let age_us = i64::try_from(self.settings.waiting_age.as_micros()).unwrap_or(i64::MAX);
        let waiting = backlog(&self.store, now_us.saturating_sub(age_us)).await?.above_age;
        if waiting > 0 {
            self.tell(Kind::Waiting, waiting_text(waiting, self.settings.waiting_age), now_us).await?;
        }
        let duplicates = repeated_deliveries(&self.store).await?;
        let more = self.more_than_an_hour_ago(now_us, duplicates);
        if more > self.settings.duplicates_per_hour {
            let text = format!(
                "recon: {more} repeated deliveries within an hour. This is an alarm about latency: providers send \
                 again what was not answered in time. Look at the receiver's answer times."
            );
            self.tell(Kind::Duplicates, text, now_us).await?;
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

    /// `read_us`: when what is told was read.
    async fn tell(&self, kind: Kind, text: String, read_us: i64) -> Result<()> {
        #[derive(Serialize)]
        struct Body<'t> {
            text: &'t str,
        }
        let now_us = self.timing.now_us();
        let held_until_us = now_us.saturating_add(HOLD_US);
        let name = kind.as_str();
        let free = notification::Free {
            told_before_us: now_us.saturating_sub(HOUR_US),
            now_us,
            told_by_wrong_clock_us: now_us.saturating_add(SKEW_US),
            held_by_wrong_clock_us: now_us.saturating_add(HOLD_US).saturating_add(SKEW_US),
        };
        if !notification::claim(&self.store, name, free, held_until_us).await? {
            return Ok(());
        }
        let body = serde_json::to_vec(&Body { text: &text }).unwrap_or_default();
        let error = match self.caller.post(&[("content-type", "application/json")], body).await {
            Ok(200..=299) => {
                return notification::settle(&self.store, name, Some(read_us), held_until_us).await;
            }
            Ok(status) => format!("answered {status}"),
            Err(error) => format!("{error:#}"),
        };
        tracing::error!("a notification was not taken: {error}; it said: {text}");
        // It is told again next time.
        notification::settle(&self.store, name, None, held_until_us).await
    }
}

/// Events that wait for longer than `age`, which is told in seconds where it is short.
fn waiting_text(waiting: u64, age: Duration) -> String {
    const SHORT: Duration = Duration::from_mins(2);
    let events = if waiting == 1 { "1 event waits".to_owned() } else { format!("{waiting} events wait") };
    let age =
        if age < SHORT { format!("{} s", age.as_secs()) } else { format!("{} min", age.as_secs() / 60) };
    format!("recon: {events} for longer than {age} to be applied.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_age_is_told_in_seconds_and_one_event_is_one() {
        let told = [(1, 1), (2, 119), (3, 120), (1, 900)]
            .map(|(waiting, age_s)| waiting_text(waiting, Duration::from_secs(age_s)));
        let expected = ["1 event waits for longer than 1 s", "2 events wait for longer than 119 s"]
            .into_iter()
            .chain(["3 events wait for longer than 2 min", "1 event waits for longer than 15 min"])
            .map(|text| format!("recon: {text} to be applied."));
        assert!(expected.eq(told));
    }
}
