//! The provider's HTTP API: one GET with its retries, under the account's limiter.
//!
//! Only GET is ever sent. The one thing to get right: a 429 has two meanings. With `lock_timeout` one
//! object is busy and only that request waits; otherwise the rate is too high and everybody waits.

use super::answer::{Answer, Verdict, judge};
use super::fetch_error::FetchError;
use super::limit::{Exceeded, Limiter};
use super::skew::ahead_us;
use super::stripe::API_VERSION;
use super::timing::Timing;
use super::wait::{Backoff, wait_before_retry};
use crate::clock::machine_now_us;
use crate::config::{LimitSettings, ProviderSettings, Secret};
use crate::record::Scope;
use crate::store::Store;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Longest pause that is believed by who does not wait for it.
const PAUSE_MAX: Duration = Duration::from_hours(1);
/// A page has at most 100 records; none of Stripe's comes near 300 KiB.
const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);
/// A refusal for the rate says nothing about the request, so it may be met more often than a failure.
const REFUSALS_PER_ATTEMPT: u32 = 4;
/// Assumed until the first answers are measured.
const LATENCY_US_ASSUMED: u64 = 300_000;

/// A provider's API. Cheap to clone; clones share limits, budget and counts.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
    answer_timeout: Duration,
    /// Longest pause that is waited for; `None`: any.
    patience: Option<Duration>,
}

struct Inner {
    http: reqwest::Client,
    base_url: String,
    api_key: Secret,
    requests_per_second: u32,
    account_requests_per_second: u32,
    attempts_max: u32,
    run_budget: Duration,
    timing: Timing,
    backoff: Backoff,
    limiters: Mutex<BTreeMap<String, Arc<Limiter>>>,
    objects_asked: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
    requests: AtomicU64,
    refusals: AtomicU64,
    waited_us: AtomicU64,
    latency_us: AtomicU64,
    clock_ahead_us: AtomicI64,
    is_trouble_told: AtomicBool,
    random: RandomState,
    /// Where the limits are shared with other processes, and the provider's name and mode there.
    shared: OnceLock<(Store, Scope)>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

impl Client {
    /// A client whose run budget starts now.
    ///
    /// # Errors
    /// When the system's root certificates cannot be read.
    pub fn new(provider: &ProviderSettings, limits: &LimitSettings) -> Result<Self> {
        Self::with_timing(provider, limits, Timing::real(), Backoff::DEFAULT)
    }

    /// A client with another clock and other waits.
    ///
    /// # Errors
    /// When the system's root certificates cannot be read.
    pub fn with_timing(
        provider: &ProviderSettings,
        limits: &LimitSettings,
        timing: Timing,
        backoff: Backoff,
    ) -> Result<Self> {
        let inner = Inner {
            http: http_client(&provider.base_url).context("prepare secure connections")?,
            base_url: provider.base_url.trim_end_matches('/').to_owned(),
            api_key: provider.api_key.clone(),
            requests_per_second: provider.requests_per_second,
            account_requests_per_second: provider.account_requests_per_second,
            attempts_max: limits.attempts_max.max(1),
            run_budget: limits.run_budget,
            timing,
            backoff,
            limiters: Mutex::default(),
            objects_asked: Mutex::default(),
            requests: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            waited_us: AtomicU64::new(0),
            latency_us: AtomicU64::new(LATENCY_US_ASSUMED),
            clock_ahead_us: AtomicI64::new(i64::MIN),
            is_trouble_told: AtomicBool::new(false),
            random: RandomState::new(),
            shared: OnceLock::new(),
        };
        Ok(Self { inner: Arc::new(inner), answer_timeout: REQUEST_TIMEOUT, patience: None })
    }

    /// The same client, whose limits are those of all processes of `store` together. To be said before the first
    /// request.
    #[must_use]
    pub fn sharing(self, store: &Store, provider: &ProviderSettings) -> Self {
        self.inner.shared.get_or_init(|| (store.clone(), provider.scope("")));
        self
    }

    /// The same client, that waits no longer than this for one answer, nor for the end of a pause that the provider
    /// asks for.
    #[must_use]
    pub const fn answered_within(mut self, timeout: Duration) -> Self {
        self.answer_timeout = timeout;
        self.patience = Some(timeout);
        self
    }

    /// GETs `path_and_query` (begins with `/`) as `account` (`""` is the platform account) under the limit of
    /// `endpoint`. The body is valid JSON.
    ///
    /// # Errors
    /// See [`FetchError`]; what may pass is tried again first, within the attempts and the run's budget.
    pub async fn get(
        &self,
        endpoint: &str,
        path_and_query: &str,
        account: &str,
    ) -> Result<Vec<u8>, FetchError> {
        Ok(self.get_at(endpoint, path_and_query, account).await?.0)
    }

    /// As [`Self::get`], with when the request was sent that was answered, Unix µs.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn get_at(
        &self,
        endpoint: &str,
        path_and_query: &str,
        account: &str,
    ) -> Result<(Vec<u8>, i64), FetchError> {
        let request = Request { endpoint, path_and_query, account };
        let limiter = self.limiter(account);
        let (mut failures, mut refusals) = (0, 0);
        loop {
            self.check_budget(&request, Duration::ZERO)?;
            if self.is_too_long(limiter.paused(endpoint)) {
                return Err(FetchError::RateLimited { what: request.what(), attempts: refusals });
            }
            let asked = self.inner.timing.elapsed();
            let permit = limiter.ready(endpoint).await;
            self.note_waited(self.inner.timing.elapsed().saturating_sub(asked));
            self.check_budget(&request, Duration::ZERO)?;
            let asked_at_us = self.inner.timing.now_us();
            let answer = self.send(&request).await;
            let (why, retry_after) = match judge(answer, &request.what()) {
                Verdict::Done(body) => return Ok((body, asked_at_us)),
                Verdict::Stop(error) => return Err(error),
                Verdict::Retry { why, retry_after } => (why, retry_after),
                Verdict::SlowDown { exceeded, retry_after } => {
                    refusals += 1;
                    self.inner.refusals.fetch_add(1, Ordering::Relaxed);
                    let attempts_max = self.inner.attempts_max.saturating_mul(REFUSALS_PER_ATTEMPT);
                    if refusals >= attempts_max {
                        return Err(FetchError::RateLimited { what: request.what(), attempts: refusals });
                    }
                    let mut wait = self.wait(&request, retry_after.as_deref(), refusals)?;
                    if self.is_too_long(wait) {
                        wait = wait.min(PAUSE_MAX);
                        limiter.refused(endpoint, permit, exceeded.unwrap_or(Exceeded::Endpoint), wait);
                        return Err(FetchError::RateLimited { what: request.what(), attempts: refusals });
                    }
                    limiter.refused(endpoint, permit, exceeded.unwrap_or(Exceeded::Endpoint), wait);
                    if exceeded.is_none() {
                        self.note_waited(wait);
                        self.inner.timing.sleep(wait).await;
                    }
                    continue;
                }
            };
            failures += 1;
            if failures >= self.inner.attempts_max {
                return Err(why.into_error(request.what(), failures));
            }
            let wait = self.wait(&request, retry_after.as_deref(), failures)?;
            tracing::debug!(what = request.what(), failures, ?wait, "asking again");
            self.tell_trouble(failures);
            self.note_waited(wait);
            self.inner.timing.sleep(wait).await;
        }
    }

    fn is_too_long(&self, wait: Duration) -> bool {
        self.patience.is_some_and(|patience| wait > patience)
    }

    /// Who waits before a terminal should know for what; once, because every request may be in the same trouble.
    fn tell_trouble(&self, failures: u32) {
        let inner = &self.inner;
        if failures == 2
            && std::io::stderr().is_terminal()
            && !inner.is_trouble_told.swap(true, Ordering::Relaxed)
        {
            let (base_url, attempts_max) = (&inner.base_url, inner.attempts_max);
            tracing::warn!("no usable answer from {base_url} yet; asking again, up to {attempts_max} times");
        }
    }

    /// Like [`Self::get_at`] for a single object: at most one request for it at a time.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn get_object(
        &self,
        endpoint: &str,
        path_and_query: &str,
        account: &str,
    ) -> Result<(Vec<u8>, i64), FetchError> {
        let path = path_and_query.split('?').next().unwrap_or_default();
        let key = format!("{account} {path}");
        let object = {
            let mut asked = self.inner.objects_asked.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(asked.entry(key.clone()).or_default())
        };
        let turn = object.lock().await;
        let result = self.get_at(endpoint, path_and_query, account).await;
        drop(turn);
        let mut asked = self.inner.objects_asked.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(&object) <= 2 {
            asked.remove(&key);
        }
        result
    }

    /// Requests sent so far, retries included.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.inner.requests.load(Ordering::Relaxed)
    }

    /// Requests refused for their rate (429) so far.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.inner.refusals.load(Ordering::Relaxed)
    }

    /// How long requests waited for their turn and before they were asked again, added up over all of them.
    #[must_use]
    pub fn waited(&self) -> Duration {
        Duration::from_micros(self.inner.waited_us.load(Ordering::Relaxed))
    }

    fn note_waited(&self, wait: Duration) {
        let wait = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.inner.waited_us.fetch_add(wait, Ordering::Relaxed);
    }

    /// How long an answer takes lately, without the wait for its turn.
    #[must_use]
    pub fn latency(&self) -> Duration {
        Duration::from_micros(self.inner.latency_us.load(Ordering::Relaxed))
    }

    /// How far this machine's clock is ahead of the provider's at least (behind: negative), µs; `None` while no answer
    /// has said what time it is there.
    #[must_use]
    pub fn clock_ahead_us(&self) -> Option<i64> {
        Some(self.inner.clock_ahead_us.load(Ordering::Relaxed)).filter(|ahead| *ahead != i64::MIN)
    }

    /// The clock that this client runs on.
    #[must_use]
    pub fn timing(&self) -> &Timing {
        &self.inner.timing
    }

    fn limiter(&self, account: &str) -> Arc<Limiter> {
        let mut limiters = self.inner.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limiter) = limiters.get(account) {
            return Arc::clone(limiter);
        }
        let inner = &self.inner;
        let mut limiter = Limiter::new(
            inner.requests_per_second,
            inner.account_requests_per_second,
            inner.timing.clone(),
        );
        if let Some((store, platform)) = inner.shared.get() {
            let scope = Scope::new(&platform.provider, account, &platform.mode);
            limiter = limiter.shared(store.clone(), scope);
        }
        let limiter = Arc::new(limiter);
        limiters.insert(account.to_owned(), Arc::clone(&limiter));
        limiter
    }

    fn wait(
        &self,
        request: &Request<'_>,
        retry_after: Option<&str>,
        attempt: u32,
    ) -> Result<Duration, FetchError> {
        let inner = &self.inner;
        let mut random = inner.random.build_hasher();
        random.write_u64(inner.requests.load(Ordering::Relaxed));
        random.write(request.path_and_query.as_bytes());
        let now_us = inner.timing.now_us();
        let wait = wait_before_retry(retry_after, attempt, now_us, random.finish(), inner.backoff);
        self.check_budget(request, wait)?;
        Ok(wait)
    }

    fn check_budget(&self, request: &Request<'_>, wait: Duration) -> Result<(), FetchError> {
        let left = self.inner.run_budget.saturating_sub(self.inner.timing.elapsed());
        if left.is_zero() || wait >= left {
            return Err(FetchError::Budget { what: request.what(), wait, left });
        }
        Ok(())
    }

    async fn send(&self, request: &Request<'_>) -> Result<Answer, reqwest::Error> {
        let inner = &self.inner;
        let url = format!("{}{}", inner.base_url, request.path_and_query);
        let mut builder = inner
            .http
            .get(url)
            .timeout(self.answer_timeout)
            .bearer_auth(inner.api_key.reveal())
            .header("stripe-version", API_VERSION)
            .header("accept", "application/json");
        if !request.account.is_empty() {
            builder = builder.header("stripe-account", request.account);
        }
        inner.requests.fetch_add(1, Ordering::Relaxed);
        let started = inner.timing.elapsed();
        let sent_us = machine_now_us();
        let response = builder.send().await?;
        let date = response.headers().get("date").and_then(|value| value.to_str().ok());
        let ahead = date.and_then(|date| ahead_us(date, sent_us, machine_now_us()));
        if let Some(ahead) = ahead {
            inner.clock_ahead_us.store(ahead, Ordering::Relaxed);
        }
        let answer = Answer::read(response, BODY_BYTES_MAX).await;
        self.note_latency(inner.timing.elapsed().saturating_sub(started));
        answer
    }

    fn note_latency(&self, latest: Duration) {
        let latest = u64::try_from(latest.as_micros()).unwrap_or(u64::MAX);
        let before = self.inner.latency_us.load(Ordering::Relaxed);
        let after = (before.saturating_mul(7).saturating_add(latest)) / 8;
        self.inner.latency_us.store(after, Ordering::Relaxed);
    }
}

/// One request, for its error texts.
struct Request<'a> {
    endpoint: &'a str,
    path_and_query: &'a str,
    account: &'a str,
}

impl Request<'_> {
    fn what(&self) -> String {
        let as_account =
            if self.account.is_empty() { String::new() } else { format!(" as {}", self.account) };
        let path = self.path_and_query.replace("%5B", "[").replace("%5D", "]");
        format!("fetch {}: GET {path}{as_account}", self.endpoint)
    }
}

/// Whether a failed connection failed over TLS, and its root cause, without the URL.
pub(super) fn root_cause(error: &reqwest::Error) -> (bool, String) {
    let mut cause: &(dyn Error + 'static) = error;
    let is_tls = names_tls(cause);
    while let Some(next) = inner_cause(cause) {
        cause = next;
    }
    (is_tls, cause.to_string())
}

fn names_tls(error: &(dyn Error + 'static)) -> bool {
    error.is::<rustls::Error>() || inner_cause(error).is_some_and(names_tls)
}

/// What an error wraps. An `io::Error` hides the error that it was made of from `source`.
fn inner_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

fn http_client(base_url: &str) -> Result<reqwest::Client> {
    Ok(http(base_url).connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT).build()?)
}

/// What every call of this program has in common: it says who calls, follows no redirect, and repeats nothing by itself.
pub(crate) fn http(url: &str) -> reqwest::ClientBuilder {
    // Whoever is first installs it; a second call finds it there, which is what is wanted.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let builder = reqwest::Client::builder()
        .user_agent(concat!("recon/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never());
    if url.starts_with("https://") {
        return builder;
    }
    // Plain HTTP is for loopback: no proxy, and no need of root certificates.
    builder.no_proxy().tls_certs_only(std::iter::empty())
}
