//! What was not taken: counted each time, and told in the log, at most two lines a minute for each provider and reason.
//!
//! The one thing to get right: nothing that a sender chose is told or counted by, neither a body nor a header nor the
//! name of an endpoint that is not there.

use super::intake::Unavailable;
use super::metrics::Metrics;
use crate::receive::Refusal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// After which time a reason is told anew, with how often it came meanwhile.
pub(super) const PAUSE: Duration = Duration::from_mins(1);

/// Provider, empty where it is none of ours, and reason.
type Key = (String, &'static str);

/// Counts and tells what was not taken.
#[derive(Debug)]
pub struct Refusals {
    metrics: Arc<Metrics>,
    /// Reasons that were told within the last minute, and how often they came since.
    untold: Mutex<BTreeMap<Key, u64>>,
}

impl Refusals {
    /// Counts into `metrics`.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, untold: Mutex::default() }
    }

    /// A delivery was refused at `at_us` (Unix µs).
    pub(super) fn refused(&self, provider: &str, reason: &'static str, at_us: i64) {
        self.metrics.refused(provider, reason, at_us);
        self.tell(provider, reason);
    }

    /// A request was turned away that is no delivery to an endpoint of ours.
    pub fn turned_away(&self, provider: &str, reason: &'static str) {
        self.metrics.turned_away(provider, reason);
        self.tell(provider, reason);
    }

    /// A delivery was told to come again.
    pub(super) fn put_off(&self, provider: &str, reason: &'static str) {
        self.metrics.delivery(provider, "unavailable");
        self.tell(provider, reason);
    }

    /// Tells every minute what came since it was told before. Never ends.
    pub async fn tell_on(&self) {
        loop {
            tokio::time::sleep(PAUSE).await;
            self.tell_rest();
        }
    }

    /// Tells what came since it was told before.
    pub fn tell_rest(&self) {
        for ((provider, reason), count) in self.rest() {
            let deliveries = if count == 1 {
                "1 more delivery was".to_owned()
            } else {
                format!("{count} more deliveries were")
            };
            say(&provider, reason, count, &deliveries);
        }
    }

    fn tell(&self, provider: &str, reason: &'static str) {
        if self.is_first(provider, reason) {
            say(provider, reason, 1, "1 delivery was");
        }
    }

    /// Whether it was not told within the last minute; else it is counted.
    fn is_first(&self, provider: &str, reason: &'static str) -> bool {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (provider.to_owned(), reason);
        let Some(count) = untold.get_mut(&key) else {
            untold.insert(key, 0);
            return true;
        };
        *count += 1;
        false
    }

    /// What came since it was told before. What did not come at all is told at once the next time.
    fn rest(&self) -> Vec<(Key, u64)> {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.retain(|_, count| *count > 0);
        untold.iter_mut().map(|(key, count)| (key.clone(), std::mem::take(count))).collect()
    }
}

fn say(provider: &str, reason: &'static str, count: u64, deliveries: &str) {
    let meaning = meaning(reason);
    let at =
        if provider.is_empty() { "outside of every endpoint".to_owned() } else { format!("at `{provider}`") };
    tracing::warn!(provider, reason, count, "{deliveries} not taken {at}: {reason}, {meaning}");
}

/// What a reason means, as `docs/receiving.md` has it.
fn meaning(reason: &str) -> String {
    if let Some(refusal) = Refusal::ALL.into_iter().find(|refusal| refusal.as_str() == reason) {
        return refusal.to_string();
    }
    match reason {
        "encoded_body" => "its body is packed (Content-Encoding)",
        "too_large" => "its body is larger than `[receive] body_max`",
        "too_slow" => "it was not there, or not safe, within `[receive] timeout`",
        "unreadable_body" => "its body was cut off or is not sent as announced",
        "unknown_provider" => "no `[[provider]]` with `webhook_secrets` has the name in its URL",
        "not_found" => "its URL is not /webhooks/NAME",
        "wrong_method" => "its method is not POST",
        "malformed_request" => "it is no HTTP/1.1 (TLS that no proxy took off, or somebody tries doors)",
        "headers_too_large" => "its headers are more or larger than 100 and 16 KiB",
        reason if reason == Unavailable::Full.as_str() => "too many deliveries are under way",
        reason if reason == Unavailable::StoreDown.as_str() => "the store is away",
        reason if reason == Unavailable::Refused.as_str() => "the store works, and refuses it",
        reason if reason == Unavailable::Ending.as_str() => "the receiver is ending",
        _ => "for a reason without a description",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_at_once_and_then_once_a_minute_with_its_count() {
        let refusals = Refusals::new(Arc::default());
        assert!(refusals.is_first("stripe", "too_old"));
        assert!(!refusals.is_first("stripe", "too_old") && !refusals.is_first("stripe", "too_old"));
        assert!(refusals.is_first("stripe", "too_large") && refusals.is_first("github", "too_old"));
        assert_eq!(refusals.rest(), [(("stripe".to_owned(), "too_old"), 2)]);
        assert!(!refusals.is_first("stripe", "too_old"), "it was told this minute");
        assert!(refusals.is_first("github", "too_old"), "a quiet minute has passed");
        assert_eq!(refusals.rest(), [(("stripe".to_owned(), "too_old"), 1)]);
        assert!(refusals.rest().is_empty());
        assert!(refusals.is_first("stripe", "too_old"));
    }

    #[test]
    fn every_word_that_is_answered_has_a_meaning() {
        let words =
            Refusal::ALL.map(Refusal::as_str).into_iter().chain(Unavailable::ALL.map(Unavailable::as_str));
        for word in words {
            assert!(!meaning(word).contains("without a description"), "{word}");
        }
    }
}
