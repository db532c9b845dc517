//! How long to wait before a request is sent again. Pure: now and the random part come in.
//!
//! The one thing to get right: a wait is never zero. A `Retry-After` that is past, unreadable or zero
//! means the usual growing wait, because "now" from many clients at once is what made the server refuse.

use crate::record::SECOND_US;
use chrono::{DateTime, NaiveDateTime};
use std::time::Duration;

/// The growing wait: `base` doubled at each attempt up to `max`, of which between half and all is waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// First wait.
    pub base: Duration,
    /// Longest wait.
    pub max: Duration,
}

impl Backoff {
    /// What Stripe's own libraries do (stripe-python `_http_client.py`: 0.5 s doubled), with a longer end.
    pub const DEFAULT: Self = Self { base: Duration::from_millis(500), max: Duration::from_secs(8) };

    /// The wait after `attempt` (counted from 1) failed; `jitter` is any random number.
    #[must_use]
    pub fn after(self, attempt: u32, jitter: u64) -> Duration {
        let factor = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let whole = self.base.saturating_mul(factor).min(self.max).max(Duration::from_millis(1));
        let permille = 500 + u32::try_from(jitter % 501).unwrap_or(0);
        whole.saturating_mul(permille) / 1000
    }
}

/// The wait before the next attempt: what the server asked for in either form of `Retry-After` (RFC 9110
/// §10.2.3: seconds or a date), rounded up to whole seconds, or the growing wait where it asked for nothing usable.
#[must_use]
pub fn wait_before_retry(
    retry_after: Option<&str>,
    attempt: u32,
    now_us: i64,
    jitter: u64,
    backoff: Backoff,
) -> Duration {
    match retry_after.and_then(|text| asked_seconds(text, now_us)) {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds),
        _ => backoff.after(attempt, jitter),
    }
}

/// Whole seconds asked for, rounded up; `None` where the text is neither form, or a date not after now.
fn asked_seconds(text: &str, now_us: i64) -> Option<u64> {
    let text = text.trim();
    if let Some((whole, fraction)) = decimal(text) {
        let seconds = whole.parse::<u64>().unwrap_or(u64::MAX);
        return Some(seconds.saturating_add(u64::from(fraction.bytes().any(|digit| digit != b'0'))));
    }
    let at_us = http_date_us(text)?;
    let ahead_us = u64::try_from(at_us.checked_sub(now_us)?).ok()?;
    Some(ahead_us.div_ceil(SECOND_US.unsigned_abs()))
}

/// `12` or `1.5`, split at the dot.
fn decimal(text: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (is_digits(whole) && is_digits(fraction)).then_some((whole, fraction))
}

/// The three forms of RFC 9110 §5.6.7, as Unix µs.
pub(super) fn http_date_us(text: &str) -> Option<i64> {
    if let Ok(at) = DateTime::parse_from_rfc2822(text) {
        return Some(at.timestamp_micros());
    }
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"]
        .into_iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .map(|at| at.and_utc().timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01T00:00:00.200Z.
    const NOW_US: i64 = 1_767_225_600_200_000;

    fn wait(retry_after: &str, attempt: u32) -> Duration {
        wait_before_retry(Some(retry_after), attempt, NOW_US, 0, Backoff::DEFAULT)
    }

    #[test]
    fn c30_retry_after_in_both_forms_is_rounded_up_and_never_zero() {
        for (text, seconds) in [
            ("Thu, 01 Jan 2026 00:01:00 GMT", 60),
            ("Thursday, 01-Jan-26 00:01:00 GMT", 60),
            ("Thu Jan  1 00:01:00 2026", 60),
            ("7", 7),
            (" 7 ", 7),
            ("1.2", 2),
            ("0.4", 1),
            ("86400", 86_400),
            ("99999999999999999999999", u64::MAX),
        ] {
            assert_eq!(wait(text, 1), Duration::from_secs(seconds), "{text}");
        }
        for text in [
            "Wed, 31 Dec 2025 23:59:59 GMT",
            "Thu, 01 Jan 2026 00:00:00 GMT",
            "soon",
            "",
            "0",
            "0.0",
            "-5",
            "1e3",
            "NaN",
            ".",
        ] {
            assert_eq!(wait(text, 1), Duration::from_millis(250), "`{text}`");
            assert_eq!(wait(text, 3), Duration::from_secs(1), "`{text}`");
        }
    }

    #[test]
    fn the_growing_wait_doubles_to_its_end_and_is_never_zero() {
        let full = |attempt| Backoff::DEFAULT.after(attempt, 500);
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 60].map(full).map(|wait| wait.as_millis()),
            [500, 1000, 2000, 4000, 8000, 8000, 8000]
        );
        let zero = Backoff { base: Duration::ZERO, max: Duration::ZERO };
        assert!(zero.after(1, 0) > Duration::ZERO);
    }
}
