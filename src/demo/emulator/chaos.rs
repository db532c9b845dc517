//! What goes wrong on demand, and the rate limit. Decisions depend on the seed, the request and how
//! often that request has come, never on which of two concurrent requests was first.

use crate::demo::Rng;
use crate::demo::world::{Record, Stream};
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::time::Duration;
use tokio::time::Instant;
use xxhash_rust::xxh3::Xxh3;

/// The form of `Retry-After` in a 429.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RetryAfter {
    /// None, as the provider documents it.
    #[default]
    None,
    /// Seconds.
    Seconds(u32),
    /// An HTTP date so many seconds ahead.
    Date(u32),
    /// Any text.
    Text(String),
}

/// Requests that are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per second for each endpoint; the bucket holds as many.
    pub endpoint_per_second: u32,
    /// Requests per second for the account.
    pub account_per_second: u32,
    /// What a refusal says.
    pub retry_after: RetryAfter,
}

/// A change of a list between two requests.
#[derive(Clone, Debug)]
pub enum Change {
    /// A record that is made while somebody pages.
    Insert(Record),
    /// A record that exists from the start and is shown only now.
    Reveal(String),
    /// A record that goes away.
    Remove(String),
}

/// What goes wrong, all off by default. Rates are of a thousand requests.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Seed of the rates.
    pub seed: u64,
    /// 500 and 503.
    pub server_error_per_mille: u64,
    /// 429 with `lock_timeout` and without the rate limit's header.
    pub lock_timeout_per_mille: u64,
    /// 200 whose body ends early.
    pub truncated_per_mille: u64,
    /// 200 with HTML, as a proxy would.
    pub html_per_mille: u64,
    /// The connection ends within the body.
    pub dropped_per_mille: u64,
    /// Faults for one request before it is answered rightly; 0 means 2.
    pub in_a_row_max: u32,
    /// Time that each list page takes.
    pub page_latency: Duration,
    /// The rate limit; none by default.
    pub rate_limit: Option<RateLimit>,
    /// Changes: list, after so many list requests to it, what.
    pub changes: Vec<(Stream, u64, Change)>,
    /// The last object of this list's so-manieth page (from 1) vanishes once the page is sent.
    pub vanishing_cursors: Vec<(Stream, u64)>,
    /// This list's so-manieth page (from 1) is empty; the flag is its `has_more`.
    pub empty_pages: Vec<(Stream, u64, bool)>,
}

/// One thing that goes wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// 500.
    ServerError,
    /// 503.
    Unavailable,
    /// 429 `lock_timeout`.
    LockTimeout,
    /// Body cut.
    Truncated,
    /// HTML.
    Html,
    /// Connection dropped.
    Dropped,
}

impl Faults {
    /// What goes wrong with this request, which has come `earlier` times before.
    #[must_use]
    pub fn mishap(&self, request: &str, earlier: u32) -> Option<Mishap> {
        let in_a_row_max = if self.in_a_row_max == 0 { 2 } else { self.in_a_row_max };
        if earlier >= in_a_row_max {
            return None;
        }
        let mut hash = Xxh3::with_seed(self.seed);
        hash.write(request.as_bytes());
        hash.write_u32(earlier);
        let mut rng = Rng::new(hash.finish());
        let mut ticket = rng.below(1000);
        let odd = rng.per_mille(500);
        let error = if odd { Mishap::ServerError } else { Mishap::Unavailable };
        for (rate, mishap) in [
            (self.server_error_per_mille, error),
            (self.lock_timeout_per_mille, Mishap::LockTimeout),
            (self.truncated_per_mille, Mishap::Truncated),
            (self.html_per_mille, Mishap::Html),
            (self.dropped_per_mille, Mishap::Dropped),
        ] {
            if ticket < rate {
                return Some(mishap);
            }
            ticket -= rate;
        }
        None
    }
}

/// Buckets of the rate limit: one for each endpoint, `""` for the account.
#[derive(Debug, Default)]
pub struct Buckets {
    // Theoretical arrival time of the next request (the generic cell rate algorithm).
    next: BTreeMap<String, Instant>,
}

impl Buckets {
    /// Takes a request; the reason where it is refused (`Stripe-Rate-Limited-Reason`).
    pub fn take(&mut self, limit: &RateLimit, endpoint: &str, now: Instant) -> Option<&'static str> {
        if !self.take_one("", limit.account_per_second, now) {
            return Some("global-rate");
        }
        (!self.take_one(endpoint, limit.endpoint_per_second, now)).then_some("endpoint-rate")
    }

    fn take_one(&mut self, key: &str, per_second: u32, now: Instant) -> bool {
        let interval = Duration::from_secs(1) / per_second.max(1);
        let burst = Duration::from_secs(1);
        let next = self.next.get(key).copied().unwrap_or(now).max(now) + interval;
        let is_free = next.duration_since(now) <= burst;
        if is_free {
            self.next.insert(key.to_owned(), next);
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_one_second_and_refills() {
        let limit =
            RateLimit { endpoint_per_second: 25, account_per_second: 100, retry_after: RetryAfter::None };
        let mut buckets = Buckets::default();
        let now = Instant::now();
        let taken = (0..40).filter(|_| buckets.take(&limit, "events", now).is_none()).count();
        assert_eq!(taken, 25);
        assert_eq!(buckets.take(&limit, "events", now), Some("endpoint-rate"));
        let later = now + Duration::from_millis(200);
        let taken = (0..40).filter(|_| buckets.take(&limit, "events", later).is_none()).count();
        assert_eq!(taken, 5);
    }

    #[test]
    fn a_request_is_answered_rightly_in_the_end() {
        let faults = Faults { server_error_per_mille: 1000, ..Faults::default() };
        assert!(faults.mishap("/v1/events", 0).is_some());
        assert!(faults.mishap("/v1/events", 1).is_some());
        assert_eq!(faults.mishap("/v1/events", 2), None);
        assert_eq!(Faults::default().mishap("/v1/events", 0), None);
    }
}
