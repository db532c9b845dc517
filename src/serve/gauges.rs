//! What the store says when it is asked for metrics: read at most every five seconds, by a connection of its
//! own that only looks.

use super::metrics::gauge;
use crate::clock;
use crate::config::StoreUrl;
use crate::store::{Access, Backlog, Store, backlog};
use anyhow::Result;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// How long an answer is used again.
const FRESH: Duration = Duration::from_secs(5);
/// How long the store may take.
const LIMIT: Duration = Duration::from_secs(2);

/// Reads the store for `/metrics`.
pub struct Gauges {
    store_url: StoreUrl,
    waiting_age: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    store: Option<Store>,
    read: Option<(Instant, Option<Backlog>)>,
}

impl Gauges {
    /// An event counts as old when it waits longer than `waiting_age`.
    #[must_use]
    pub fn new(store_url: StoreUrl, waiting_age: Duration) -> Self {
        Self { store_url, waiting_age, state: Mutex::default() }
    }

    /// The values as text; nothing while the store cannot be read.
    pub async fn text(&self) -> String {
        let mut state = self.state.lock().await;
        let fresh = state.read.filter(|(at, _)| at.elapsed() < FRESH);
        let backlog = match fresh {
            Some((_, backlog)) => backlog,
            None => self.read_again(&mut state).await,
        };
        backlog.map(|backlog| self.describe(backlog)).unwrap_or_default()
    }

    async fn read_again(&self, state: &mut State) -> Option<Backlog> {
        let backlog = match timeout(LIMIT, self.read(state)).await {
            Ok(Ok(backlog)) => Some(backlog),
            Ok(Err(error)) => {
                tracing::debug!("metrics without the store: {error:#}");
                None
            }
            Err(_) => None,
        };
        if backlog.is_none() {
            state.store = None;
        }
        state.read = Some((Instant::now(), backlog));
        backlog
    }

    async fn read(&self, state: &mut State) -> Result<Backlog> {
        if state.store.is_none() {
            state.store = Some(Store::open(&self.store_url, Access::ReadOnly).await?);
        }
        let Some(store) = &state.store else { anyhow::bail!("there is no store") };
        let age_us = i64::try_from(self.waiting_age.as_micros()).unwrap_or(i64::MAX);
        backlog(store, clock::now_us().saturating_sub(age_us)).await
    }

    fn describe(&self, backlog: Backlog) -> String {
        let oldest_s = backlog.oldest_us.map_or(0, |at_us| (clock::now_us() - at_us).max(0) / 1_000_000);
        let mut text = String::new();
        let age = self.waiting_age.as_secs();
        for (name, help, value) in [
            ("recon_events_waiting", "Events that are to be applied", backlog.waiting),
            ("recon_events_parked", "Events that wait for another one", backlog.parked),
            ("recon_events_dead", "Events that are not tried again without a person", backlog.dead),
            (
                "recon_events_waiting_above_age",
                &*format!("Events that wait or are parked for longer than {age} seconds"),
                backlog.above_age,
            ),
            (
                "recon_oldest_waiting_seconds",
                "Age of the oldest event that waits or is parked",
                u64::try_from(oldest_s).unwrap_or(0),
            ),
        ] {
            gauge(&mut text, name, help, value);
        }
        text
    }
}
