//! How provider code tells time and waits. Injected, so that every wait can be stated exactly.
//!
//! The one thing to get right: the pace of requests runs on `elapsed`, which never goes back; only the
//! date form of `Retry-After` is read against the wall clock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A monotonic clock with a wall-clock start, and a way to wait. Cheap to clone.
#[derive(Clone)]
pub struct Timing {
    started_us: i64,
    elapsed: Arc<dyn Fn() -> Duration + Send + Sync>,
    sleep: Arc<dyn Fn(Duration) -> Sleep + Send + Sync>,
}

impl fmt::Debug for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timing").field("started_us", &self.started_us).finish_non_exhaustive()
    }
}

impl Timing {
    /// The real clock, starting now.
    #[must_use]
    pub fn real() -> Self {
        let start = tokio::time::Instant::now();
        Self::new(
            crate::clock::now_us(),
            move || start.elapsed(),
            |wait| Box::pin(tokio::time::sleep(wait)) as Sleep,
        )
    }

    /// A clock that stood at `started_us` (Unix µs) when `elapsed` was zero. `sleep` must not return
    /// before `elapsed` has grown by what it was given.
    pub fn new(
        started_us: i64,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
        sleep: impl Fn(Duration) -> Sleep + Send + Sync + 'static,
    ) -> Self {
        Self { started_us, elapsed: Arc::new(elapsed), sleep: Arc::new(sleep) }
    }

    /// Time since the clock was made. Never goes back.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        (self.elapsed)()
    }

    /// Now, Unix µs.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        let elapsed = i64::try_from(self.elapsed().as_micros()).unwrap_or(i64::MAX);
        self.started_us.saturating_add(elapsed)
    }

    /// Waits.
    pub async fn sleep(&self, wait: Duration) {
        (self.sleep)(wait).await;
    }
}
