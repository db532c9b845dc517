//! The only place that reads the wall clock. Commands take one `now` at their start and hand it on.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now as Unix µs. `RECON_NOW` (Unix seconds) overrides it, so that a demonstration or a test can
/// stand in another month; a run prints its window, so an override cannot hide.
#[must_use]
pub fn now_us() -> i64 {
    if let Some(seconds) = std::env::var("RECON_NOW").ok().and_then(|text| text.parse::<i64>().ok()) {
        return seconds.saturating_mul(crate::record::SECOND_US);
    }
    machine_now_us()
}

/// The machine's own time as Unix µs, whatever `RECON_NOW` says: for leases, which are about this
/// process and not about the period that it reconciles.
#[must_use]
pub fn machine_now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
