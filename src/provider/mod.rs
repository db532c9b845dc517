//! Providers: one pure file each (wire → facts, streams, state ranks); `client.rs` and `pager.rs` are the
//! only HTTP out.
//!
//! Reading order of the HTTP side: `client.rs` (one request), `chain.rs` (one slice of a list, pure),
//! `pager.rs` (a window of a list), `limit.rs` (the pace of it all).

mod answer;
mod by_id;
mod cancel;
mod chain;
#[cfg(test)]
mod chain_tests;
mod client;
mod coverage;
mod fetch_error;
mod future;
mod invoice_payments;
mod limit;
mod list_page;
mod pager;
mod progress;
mod share;
mod sightings;
mod skew;
mod stream_pager;
mod timing;
mod wait;
pub mod stripe;

pub use by_id::{ById, Failing, Lookup};
pub use cancel::{Cancel, CancelHandle};
pub use client::Client;
pub(crate) use client::http;
pub use fetch_error::{FetchError, hint_of};
pub use invoice_payments::{InvoicesOf, fetch_invoices_of};
pub use limit::{Exceeded, Limiter, Permit};
pub use list_page::{Record, read_page};
pub use pager::{Paged, RunContext, page};
pub use progress::Progress;
pub use timing::Timing;
pub use wait::{Backoff, wait_before_retry};

use std::time::Duration;

/// A list's end of memory moves while it is read; what is this close to it is not relied upon.
const MEMORY_MARGIN: Duration = Duration::from_hours(1);

/// One list of a provider, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Name in the store, in `coverage.csv` and of the endpoint's limit.
    pub name: &'static str,
    /// Path of the list, such as `/v1/charges`.
    pub path: &'static str,
    /// Query pairs that every page carries, such as `("expand[]", "data.balance_transaction")`. For a single
    /// object only `expand[]` is sent, without its leading `data.`.
    pub query: &'static [(&'static str, &'static str)],
    /// How far back the provider lists it; `None` for ever.
    pub memory: Option<Duration>,
    /// Path of a single object without its id, such as `/v1/charges`.
    pub by_id_path: &'static str,
}

impl Stream {
    /// Path and query of its newest record alone, shown as a run wants records.
    #[must_use]
    pub fn newest_path(&self) -> String {
        list_page::newest_path(self)
    }

    /// First instant (Unix µs) that the provider lists reliably at `now_us`; `None` where it lists all.
    #[must_use]
    pub fn listed_from_us(&self, now_us: i64) -> Option<i64> {
        let memory = self.memory?.saturating_sub(MEMORY_MARGIN);
        let memory_us = i64::try_from(memory.as_micros()).unwrap_or(i64::MAX);
        Some(now_us.saturating_sub(memory_us).max(0))
    }
}
