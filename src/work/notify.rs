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
use crate::store::{Store, Untold, backlog, has_untold, keep_told, repeated_deliveries, take_untold};
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

    /// Each dead letter is told once. What became one within an hour after the last notification is told after that hour.
    async fn tell_of_dead_letters(&self) -> Result<()> {
        if !has_untold(&self.store).await? {
            return Ok(());
        }
        let Some(telling) = self.take_on(Kind::DeadLetter).await? else { return Ok(()) };
        let mark = telling.held_until_us.saturating_neg();
        let Some(Untold { events, first_error }) = take_untold(&self.store, mark).await? else {
            return self.settle(telling, None).await;
        };
        let became = match events {
            1 => "1 event became a dead letter and is".to_owned(),
            _ => format!("{events} events became dead letters and are"),
        };
        let first =
            if first_error.is_empty() { String::new() } else { format!(" The first: {first_error}.") };
        let text = format!(
            "recon: {became} not tried again.{first} `recon inbox dead` lists them, `recon inbox retry EVENT \
             --reason …` tries one again."
        );
        let told_at_us = self.is_taken(&text).await.then_some(telling.from_us);
        if let Some(told_at_us) = told_at_us {
            keep_told(&self.store, mark, told_at_us).await?;
        }
        self.settle(telling, told_at_us).await
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
            self.tell(Kind::Waiting, waiting_text(waiting, self.settings.waiting_age)).await?;
        }
        let duplicates = repeated_deliveries(&self.store).await?;
        let more = self.more_than_an_hour_ago(now_us, duplicates);
        if more > self.settings.duplicates_per_hour {
            let text = format!(
                "recon: {more} repeated deliveries within an hour. This is an alarm about latency: providers send \
                 again what was not answered in time. Look at the receiver's answer times."
            );
            self.tell(Kind::Duplicates, text).await?;
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

    async fn tell(&self, kind: Kind, text: String) -> Result<()> {
        let Some(telling) = self.take_on(kind).await? else { return Ok(()) };
        let told_at_us = self.is_taken(&text).await.then_some(telling.from_us);
        self.settle(telling, told_at_us).await
    }

    /// The telling of this, where it is free and was not told within an hour.
    async fn take_on(&self, kind: Kind) -> Result<Option<Telling>> {
        let now_us = self.timing.now_us();
        let held_until_us = now_us.saturating_add(HOLD_US);
        let free = notification::Free {
            told_before_us: now_us.saturating_sub(HOUR_US),
            now_us,
            told_by_wrong_clock_us: now_us.saturating_add(SKEW_US),
            held_by_wrong_clock_us: now_us.saturating_add(HOLD_US).saturating_add(SKEW_US),
        };
        let is_ours = notification::claim(&self.store, kind.as_str(), free, held_until_us).await?;
        Ok(is_ours.then_some(Telling { kind, from_us: now_us, held_until_us }))
    }

    /// Whether the team's URL took it. Where it did not, it is due again.
    async fn is_taken(&self, text: &str) -> bool {
        #[derive(Serialize)]
        struct Body<'t> {
            text: &'t str,
        }
        let body = serde_json::to_vec(&Body { text }).unwrap_or_default();
        let error = match self.caller.post(&[("content-type", "application/json")], body).await {
            Ok(200..=299) => return true,
            Ok(status) => format!("answered {status}"),
            Err(error) => format!("{error:#}"),
        };
        tracing::error!("a notification was not taken: {error}; it said: {text}");
        false
    }

    async fn settle(&self, telling: Telling, told_at_us: Option<i64>) -> Result<()> {
        notification::settle(&self.store, telling.kind.as_str(), told_at_us, telling.held_until_us).await
    }
}

/// What this process tells now, so that nobody else does.
#[derive(Clone, Copy, Debug)]
struct Telling {
    kind: Kind,
    /// Since when, Unix µs.
    from_us: i64,
    /// Until when nobody else takes it on, Unix µs.
    held_until_us: i64,
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
