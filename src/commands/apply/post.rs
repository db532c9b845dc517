//! The team's handler: one delivery at a time, freshly signed, no faster than it is allowed.
//!
//! The one thing to get right: what is sent is what the provider made, byte for byte; only the signature is new. No
//! error and no line repeats a body, a URL or a secret.

use crate::clock::machine_now_us;
use crate::config::{HttpTarget, Secret, Settings, Unusable};
use crate::receive::{Kept, Scheme, again, check_secrets};
use crate::record::EventKey;
use crate::serve::scheme_of;
use crate::work::{Caller, no_answer};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// So many deliveries in a row that failed, and the rest is not delivered: the handler is down.
const FAILURES_IN_A_ROW: u32 = 5;
/// The header by which a handler can tell a correction from a live delivery, and keep from writing to customers again.
/// Its value is the run that planned it.
const BY_RUN: &str = "recon-run";
/// Answers that ask to come again later: request timeout, too early, too many requests (RFC 9110, 8470, 6585).
const LATER: [u16; 3] = [408, 425, 429];

/// An event that is to be delivered. It has no `Debug`: a body holds personal data.
#[derive(Clone)]
pub(super) struct Parcel {
    key: EventKey,
    body: Vec<u8>,
    headers: BTreeMap<String, String>,
    url: String,
    created_s: i64,
}

impl Parcel {
    /// With what came with it, where it was received before.
    pub fn of(key: &EventKey, body: Vec<u8>, headers: BTreeMap<String, String>, url: String) -> Self {
        #[derive(Deserialize)]
        struct Made {
            created: i64,
        }
        let created_s = serde_json::from_slice::<Made>(&body).map_or(0, |made| made.created);
        Self { key: key.clone(), body, headers, url, created_s }
    }

    /// Oldest first.
    pub fn order(&self) -> (i64, &str) {
        (self.created_s, &self.key.event_id)
    }
}

/// What the handler answered, the worst last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answered {
    /// 2xx.
    Yes(u16),
    /// It will not take it: 4xx.
    No(u16),
    /// It could not, or did not answer; in words.
    Failed(String),
}

/// The handler of `[corrections.http]`.
pub(super) struct Handler {
    url: Secret,
    secrets: [Secret; 1],
    schemes: BTreeMap<String, Scheme>,
    run_id: String,
    timeout: Duration,
    between: Duration,
    /// When the next delivery may begin.
    next: Mutex<Instant>,
    failures: AtomicU32,
}

impl Handler {
    /// Prepares deliveries.
    ///
    /// # Errors
    /// [`Unusable`] when the secret is none of the provider's scheme.
    pub fn new(settings: &Settings, http: &HttpTarget, run_id: &str) -> Result<Self> {
        let secrets = [http.secret.clone()];
        let mut schemes = BTreeMap::new();
        for provider in &settings.providers {
            let endpoint = settings.endpoints.iter().find(|one| one.name == provider.name);
            let endpoint = endpoint.with_context(|| format!("{} is no endpoint", provider.name))?;
            let scheme = scheme_of(endpoint)?;
            check_secrets(&scheme, &secrets).map_err(|why| {
                Unusable::new(
                    format!("[corrections.http] secret: {}: {why}", provider.name),
                    "name the secret that the handler checks this provider's deliveries with",
                )
            })?;
            schemes.insert(provider.name.clone(), scheme);
        }
        Ok(Self {
            url: http.url.clone(),
            secrets,
            schemes,
            run_id: run_id.to_owned(),
            timeout: http.timeout,
            between: Duration::from_secs(1) / http.requests_per_second,
            next: Mutex::new(Instant::now()),
            failures: AtomicU32::new(0),
        })
    }

    /// Delivers once.
    ///
    /// # Errors
    /// When no delivery can be made at all.
    pub async fn deliver(&self, parcel: &Parcel) -> Result<Answered> {
        if self.failures.load(Ordering::Relaxed) >= FAILURES_IN_A_ROW {
            return Ok(Answered::Failed(format!(
                "not delivered, because {FAILURES_IN_A_ROW} deliveries before it failed"
            )));
        }
        self.wait().await;
        let scheme = self.schemes.get(&*parcel.key.scope.provider);
        let scheme = scheme.with_context(|| format!("{} is not configured", parcel.key.scope.provider))?;
        let kept = Kept {
            body: &parcel.body,
            headers: &parcel.headers,
            url: &parcel.url,
            mode: &parcel.key.scope.mode,
        };
        // A signature says when it was made, and the handler looks at its own clock.
        let again = again(scheme, &self.secrets, kept, self.url.reveal(), machine_now_us());
        let mut headers: Vec<(&str, &str)> =
            again.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        headers.push((BY_RUN, &self.run_id));
        let caller = Caller::new(&again.url, self.timeout)?;
        let answered = match caller.post(&headers, again.body).await {
            Ok(status @ 200..=299) => Answered::Yes(status),
            Ok(status @ 400..=499) if !LATER.contains(&status) => Answered::No(status),
            Ok(status) => Answered::Failed(format!("the handler failed with {status}")),
            Err(error) => Answered::Failed(format!("the handler {}", no_answer(&error, self.timeout))),
        };
        if matches!(answered, Answered::Failed(_)) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        } else {
            self.failures.store(0, Ordering::Relaxed);
        }
        Ok(answered)
    }

    /// Waits for its turn.
    async fn wait(&self) {
        let mut next = self.next.lock().await;
        let turn = (*next).max(Instant::now());
        *next = turn + self.between;
        drop(next);
        tokio::time::sleep_until(turn).await;
    }
}
