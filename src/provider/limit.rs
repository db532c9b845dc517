//! The pace of requests: one limiter per provider account and one per endpoint.
//!
//! Requests are spread, never bunched: a request costs [`CELLS`] cells and the bucket holds only a quarter
//! request more, which makes up for a timer that fires late without ever allowing two at once. Waiters
//! queue in order, so no wake-up is wasted on a race. The one thing to get right: a refusal (429) that
//! answers a request sent before the last slow-down says nothing new and must not slow down again.

use super::share::Share;
use super::timing::Timing;
use crate::record::Scope;
use crate::store::{LimitKey, Store};
use governor::clock::{Clock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Cells that one request costs.
const CELLS: NonZeroU32 = NonZeroU32::new(8).unwrap();
/// Cells that the bucket holds: one request and a quarter.
const CELLS_MAX: NonZeroU32 = NonZeroU32::new(10).unwrap();
/// Rates are held in requests per 1000 s, so that a slow recovery needs no fractions.
const MILLI: u64 = 1000;
/// A rate is never halved below one request per second.
const MILLIRATE_MIN: u64 = MILLI;
/// After a slow-down the rate grows by this part of the full rate …
const RECOVERY_PARTS: u64 = 20;
/// … once in this time without a refusal.
const RECOVERY_STEP: Duration = Duration::from_secs(2);

/// What a refusal says was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// The limit of the endpoint.
    Endpoint,
    /// The limit of the whole account.
    Account,
}

/// Leave to send one request. Says which slow-downs were known when it was given.
#[derive(Clone, Copy, Debug)]
pub struct Permit {
    account_epoch: u64,
    endpoint_epoch: u64,
}

/// The limiter of one provider account and its endpoints.
#[derive(Debug)]
pub struct Limiter {
    account: Gate,
    endpoints: Mutex<BTreeMap<String, Arc<Gate>>>,
    endpoint_rate: u32,
    timing: Timing,
    /// Where other processes take their part of the same limits.
    shared: Option<(Store, Scope)>,
}

impl Limiter {
    /// A limiter of `account_rate` requests per second in all and `endpoint_rate` for each endpoint; zero
    /// counts as one.
    #[must_use]
    pub fn new(endpoint_rate: u32, account_rate: u32, timing: Timing) -> Self {
        let account = Gate::new(account_rate, &timing, None);
        Self { account, endpoints: Mutex::default(), endpoint_rate, timing, shared: None }
    }

    /// The same limiter, of limits that every process of `store` takes its part of.
    #[must_use]
    pub fn shared(self, store: Store, scope: Scope) -> Self {
        let share = Share::new(store.clone(), LimitKey { scope: scope.clone(), endpoint: String::new() });
        let account = Gate { share: Some(share), ..self.account };
        Self { account, shared: Some((store, scope)), ..self }
    }

    /// Waits until a request to `endpoint` may be sent.
    ///
    /// The account's turn comes first and the endpoint's second, while the endpoint's queue is held: so
    /// neither limit is ever exceeded by waiting for the other.
    pub async fn ready(&self, endpoint: &str) -> Permit {
        let gate = self.endpoint(endpoint);
        let _turn = gate.queue.lock().await;
        gate.unpaused(&self.timing).await;
        {
            let _turn = self.account.queue.lock().await;
            self.account.wait(&self.timing).await;
        }
        gate.wait(&self.timing).await;
        Permit { account_epoch: self.account.pace().epoch, endpoint_epoch: gate.pace().epoch }
    }

    /// How long nothing is sent to `endpoint` because of refusals.
    #[must_use]
    pub fn paused(&self, endpoint: &str) -> Duration {
        let until = self.account.pace().paused_until.max(self.endpoint(endpoint).pace().paused_until);
        until.saturating_sub(self.timing.elapsed())
    }

    /// Records a refusal of the request that `permit` was given for: nothing more is sent for `pause`, and
    /// after it at half the rate, which then recovers slowly.
    pub fn refused(&self, endpoint: &str, permit: Permit, exceeded: Exceeded, pause: Duration) {
        let now = self.timing.elapsed();
        match exceeded {
            Exceeded::Endpoint => {
                self.endpoint(endpoint).slow(permit.endpoint_epoch, now + pause, &self.timing);
            }
            Exceeded::Account => self.account.slow(permit.account_epoch, now + pause, &self.timing),
        }
    }

    /// The present rate of an endpoint, in requests per 1000 s, for progress and tests.
    #[must_use]
    pub fn millirate(&self, endpoint: &str) -> u64 {
        self.endpoint(endpoint).pace().millirate
    }

    fn endpoint(&self, name: &str) -> Arc<Gate> {
        let mut endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = endpoints.get(name) {
            return Arc::clone(gate);
        }
        let key = |scope: &Scope| LimitKey { scope: scope.clone(), endpoint: name.to_owned() };
        let share = self.shared.as_ref().map(|(store, scope)| Share::new(store.clone(), key(scope)));
        let gate = Arc::new(Gate::new(self.endpoint_rate, &self.timing, share));
        endpoints.insert(name.to_owned(), Arc::clone(&gate));
        gate
    }
}

/// One limit: a queue of waiters and a pace.
#[derive(Debug)]
struct Gate {
    queue: tokio::sync::Mutex<()>,
    pace: Mutex<Pace>,
    share: Option<Share>,
}

#[derive(Debug)]
struct Pace {
    bucket: Arc<Bucket>,
    millirate: u64,
    millirate_max: u64,
    /// Counts slow-downs.
    epoch: u64,
    paused_until: Duration,
    changed_at: Duration,
}

impl Gate {
    fn new(rate: u32, timing: &Timing, share: Option<Share>) -> Self {
        let millirate = u64::from(rate.max(1)) * MILLI;
        let pace = Pace {
            bucket: Arc::new(bucket(millirate, timing)),
            millirate,
            millirate_max: millirate,
            epoch: 0,
            paused_until: Duration::ZERO,
            changed_at: Duration::ZERO,
        };
        Self { queue: tokio::sync::Mutex::default(), pace: Mutex::new(pace), share }
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of a pause, also of one that begins meanwhile.
    async fn unpaused(&self, timing: &Timing) {
        loop {
            let pause = self.pace().paused_until.saturating_sub(timing.elapsed());
            if pause.is_zero() {
                return;
            }
            timing.sleep(pause).await;
        }
    }

    /// Takes the next slot. Called by one waiter at a time, who holds the queue.
    async fn wait(&self, timing: &Timing) {
        loop {
            self.unpaused(timing).await;
            self.recover(timing);
            if let Some(share) = &self.share {
                let millirate = self.pace().millirate;
                share.slot(step(millirate), timing).await;
                if self.pace().paused_until > timing.elapsed() {
                    continue;
                }
                return;
            }
            let bucket = Arc::clone(&self.pace().bucket);
            let wait = match bucket.check_n(CELLS) {
                Ok(Ok(())) => return,
                Ok(Err(not_until)) => not_until.wait_time_from(bucket.clock().now()),
                Err(capacity) => unreachable!("a bucket holds {CELLS_MAX} cells, not {capacity}"),
            };
            timing.sleep(wait).await;
        }
    }

    fn recover(&self, timing: &Timing) {
        let now = timing.elapsed();
        let mut pace = self.pace();
        if pace.millirate < pace.millirate_max && now >= pace.changed_at + RECOVERY_STEP {
            let step = (pace.millirate_max / RECOVERY_PARTS).max(1);
            let raised = (pace.millirate + step).min(pace.millirate_max);
            pace.change(raised, timing);
        }
    }

    fn slow(&self, epoch_sent: u64, paused_until: Duration, timing: &Timing) {
        if let Some(share) = &self.share {
            share.delay(paused_until.saturating_sub(timing.elapsed()));
        }
        let mut pace = self.pace();
        pace.paused_until = pace.paused_until.max(paused_until);
        if epoch_sent == pace.epoch {
            pace.epoch += 1;
            let half = (pace.millirate / 2).max(MILLIRATE_MIN.min(pace.millirate_max));
            pace.change(half, timing);
        }
        pace.changed_at = pace.changed_at.max(paused_until);
    }
}

impl Pace {
    fn change(&mut self, millirate: u64, timing: &Timing) {
        self.millirate = millirate;
        self.changed_at = timing.elapsed();
        let fresh = bucket(millirate, timing);
        // A new bucket is full; a change of rate must not be an extra request.
        drop(fresh.check_n(CELLS));
        self.bucket = Arc::new(fresh);
    }
}

type Bucket = RateLimiter<NotKeyed, InMemoryState, TimingClock, NoOpMiddleware<Nanos>>;

/// The time from one request to the next.
fn step(millirate: u64) -> Duration {
    Duration::from_nanos(1_000_000_000 * MILLI / millirate.max(1))
}

fn bucket(millirate: u64, timing: &Timing) -> Bucket {
    let per_cell = Duration::from_nanos(1_000_000_000 * MILLI / (millirate * u64::from(CELLS.get())).max(1));
    let quota = Quota::with_period(per_cell.max(Duration::from_nanos(1)))
        .unwrap_or(Quota::per_second(NonZeroU32::MIN))
        .allow_burst(CELLS_MAX);
    Bucket::direct_with_clock(quota, TimingClock(timing.clone()))
}

/// [`Timing`] as governor wants it.
#[derive(Clone, Debug)]
struct TimingClock(Timing);

impl Clock for TimingClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::default() + Nanos::from(self.0.elapsed())
    }
}

const _: fn() = || {
    fn is_reference<T: Reference>() {}
    is_reference::<Nanos>();
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Time that passes only by being waited for, each wait ending `late` after it should.
    fn simulated(late: Duration) -> Timing {
        let nanos = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&nanos);
        Timing::new(
            0,
            move || Duration::from_nanos(read.load(Ordering::SeqCst)),
            move |wait| {
                let target = Duration::from_nanos(nanos.load(Ordering::SeqCst)) + wait + late;
                nanos.fetch_max(u64::try_from(target.as_nanos()).unwrap(), Ordering::SeqCst);
                Box::pin(tokio::task::yield_now())
            },
        )
    }

    #[tokio::test]
    async fn a_late_timer_costs_nothing_and_no_second_has_a_burst() {
        let timing = simulated(Duration::from_millis(3));
        let limiter = Limiter::new(25, 100, timing.clone());
        let mut sent = Vec::new();
        for _ in 0..2500 {
            limiter.ready("events").await;
            sent.push(timing.elapsed());
        }
        let took = timing.elapsed();
        assert!(took >= Duration::from_millis(99_900) && took < Duration::from_secs(101), "{took:?}");
        for (index, start) in sent.iter().enumerate() {
            let within = sent[index..].iter().take_while(|at| **at < *start + Duration::from_secs(1)).count();
            assert!(within <= 26, "{within} requests in the second after {start:?}");
        }
        for pair in sent.windows(2) {
            assert!(pair[1].saturating_sub(pair[0]) >= Duration::from_millis(29), "{pair:?}");
        }
    }

    #[tokio::test]
    async fn endpoints_share_the_account() {
        let timing = simulated(Duration::ZERO);
        let limiter = Limiter::new(25, 40, timing.clone());
        for _ in 0..400 {
            limiter.ready("events").await;
            limiter.ready("charges").await;
        }
        let took = timing.elapsed();
        assert!(took >= Duration::from_millis(19_900) && took < Duration::from_secs(21), "{took:?}");
    }

    #[tokio::test]
    async fn one_storm_halves_once_and_recovers_slowly() {
        let timing = simulated(Duration::ZERO);
        let limiter = Limiter::new(20, 100, timing.clone());
        let mut permits = Vec::new();
        for _ in 0..10 {
            permits.push(limiter.ready("events").await);
        }
        for permit in permits {
            limiter.refused("events", permit, Exceeded::Endpoint, Duration::from_secs(5));
        }
        assert_eq!(limiter.millirate("events"), 10_000);
        assert_eq!(limiter.millirate("charges"), 20_000);
        let before = timing.elapsed();
        limiter.ready("events").await;
        assert!(timing.elapsed().saturating_sub(before) >= Duration::from_secs(5));
        let resumed = timing.elapsed();
        for _ in 0..10 {
            limiter.ready("events").await;
        }
        assert!(
            timing.elapsed().saturating_sub(resumed) >= Duration::from_millis(950),
            "no storm after a pause"
        );
        for _ in 0..1000 {
            limiter.ready("events").await;
        }
        assert_eq!(limiter.millirate("events"), 20_000);
    }
}
