//! How provider code tells time and waits. Injected, so that every wait can be stated exactly.
//!
//! The one thing to get right: the pace of requests runs on `elapsed`, which never goes back; what is compared with
//! stored instants is the wall clock as it stands, which may be set at any time.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A monotonic clock, a wall clock, and a way to wait. Cheap to clone.
#[derive(Clone)]
pub struct Timing {
    now_us: Arc<dyn Fn() -> i64 + Send + Sync>,
    elapsed: Arc<dyn Fn() -> Duration + Send + Sync>,
    sleep: Arc<dyn Fn(Duration) -> Sleep + Send + Sync>,
}

impl fmt::Debug for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timing").finish_non_exhaustive()
    }
}

impl Timing {
    /// The real clocks.
    #[must_use]
    pub fn real() -> Self {
        let start = tokio::time::Instant::now();
        Self {
            now_us: Arc::new(crate::clock::now_us),
            elapsed: Arc::new(move || start.elapsed()),
            sleep: Arc::new(|wait| Box::pin(tokio::time::sleep(wait)) as Sleep),
        }
    }

    /// A clock that stood at `started_us` (Unix µs) when `elapsed` was zero. `sleep` must not return
    /// before `elapsed` has grown by what it was given.
    pub fn new(
        started_us: i64,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
        sleep: impl Fn(Duration) -> Sleep + Send + Sync + 'static,
    ) -> Self {
        let elapsed = Arc::new(elapsed);
        let since_start = Arc::clone(&elapsed);
        let now_us =
            move || started_us.saturating_add(i64::try_from(since_start().as_micros()).unwrap_or(i64::MAX));
        Self { now_us: Arc::new(now_us), elapsed, sleep: Arc::new(sleep) }
    }

    /// Time since the clock was made. Never goes back.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        (self.elapsed)()
    }

    /// Now, Unix µs.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        (self.now_us)()
    }

    /// Waits.
    pub async fn sleep(&self, wait: Duration) {
        (self.sleep)(wait).await;
    }
}
