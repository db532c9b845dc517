//! Progress of each stream on stderr: bars on a terminal, a line now and then otherwise.

use super::timing::Timing;
use crate::record::Scope;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Time between two lines of one stream where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(15);

/// Where progress is shown.
#[derive(Debug)]
pub struct Progress {
    bars: Option<MultiProgress>,
}

impl Drop for Progress {
    /// What was shown on the way is over; what was read stands in the summary.
    fn drop(&mut self) {
        if let Some(Err(error)) = self.bars.as_ref().map(MultiProgress::clear) {
            tracing::debug!("the progress could not be cleared: {error}");
        }
    }
}

impl Progress {
    /// Bars where stderr is a terminal, lines of the log where it is not.
    #[must_use]
    pub fn stderr() -> Self {
        let bars = std::io::stderr()
            .is_terminal()
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8)));
        Self { bars }
    }

    /// Lines of the log only.
    #[must_use]
    pub const fn lines() -> Self {
        Self { bars: None }
    }

    pub(super) fn stream(
        &self,
        scope: &Scope,
        stream: &str,
        seconds: i64,
        requests_per_second: u32,
        timing: Timing,
    ) -> StreamProgress {
        let label = if scope.account.is_empty() {
            format!("{} {stream}", scope.provider)
        } else {
            format!("{} {} {stream}", scope.provider, scope.account)
        };
        let bar = self.bars.as_ref().map(|bars| bars.add(bar(&label)));
        let started = timing.elapsed();
        StreamProgress { label, bar, timing, started, lined: started, seconds, requests_per_second, pages: 0 }
    }
}

fn bar(label: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:30} {bar:20} {msg}");
    ProgressBar::new(1000)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_prefix(label.to_owned())
}

/// Progress of one stream.
#[derive(Debug)]
pub(super) struct StreamProgress {
    label: String,
    bar: Option<ProgressBar>,
    timing: Timing,
    started: Duration,
    lined: Duration,
    seconds: i64,
    requests_per_second: u32,
    pages: u64,
}

impl StreamProgress {
    /// `pages` read so far, `seconds_left` of the window unread.
    pub(super) fn page(&mut self, pages: u64, seconds_left: i64) {
        self.pages = pages;
        let now = self.timing.elapsed();
        if self.bar.is_none() && now < self.lined + LINE_EVERY {
            return;
        }
        let took = now.saturating_sub(self.started);
        let text = describe(took, pages, self.seconds, seconds_left, self.requests_per_second);
        if let Some(bar) = &self.bar {
            bar.set_position(u64::from(done_permille(self.seconds, seconds_left)));
            bar.set_message(text);
        } else {
            self.lined = now;
            tracing::info!("{}: {text}", self.label);
        }
    }

    pub(super) fn finish(&self) {
        let took = self.timing.elapsed().saturating_sub(self.started);
        let text = format!("{} in {} s", counted(self.pages), took.as_secs());
        if let Some(bar) = &self.bar {
            bar.set_position(1000);
            bar.finish_with_message(text);
        } else {
            tracing::debug!("{}: {text}", self.label);
        }
    }
}

fn done_permille(seconds: i64, seconds_left: i64) -> u32 {
    let done = seconds.saturating_sub(seconds_left).max(0).saturating_mul(1000);
    u32::try_from(done / seconds.max(1)).unwrap_or(1000).min(1000)
}

/// Rate, share of the limit, time left.
fn describe(took: Duration, pages: u64, seconds: i64, seconds_left: i64, requests_per_second: u32) -> String {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    let per_second = pages.saturating_mul(1000) / millis;
    // What a limit lets go at once in the beginning is no more than it allows.
    let share = (pages.saturating_mul(100_000) / millis / u64::from(requests_per_second.max(1))).min(100);
    let done = u64::from(done_permille(seconds, seconds_left));
    let left = match done {
        0 => "?".to_owned(),
        done => format!("{} s", millis.saturating_mul(1000 - done) / done / 1000),
    };
    format!("{}, {per_second}/s, {share} % of the limit, {left} left", counted(pages))
}

fn counted(pages: u64) -> String {
    if pages == 1 { "1 page".to_owned() } else { format!("{pages} pages") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_share_and_time_left() {
        let text = describe(Duration::from_secs(10), 200, 1000, 750, 25);
        assert_eq!(text, "200 pages, 20/s, 80 % of the limit, 30 s left");
        // The first second's requests go at once.
        let burst = describe(Duration::from_millis(100), 2, 1000, 750, 2);
        assert!(burst.contains(" 100 % of the limit"), "{burst}");
        assert_eq!(describe(Duration::ZERO, 0, 0, 0, 0), "0 pages, 0/s, 0 % of the limit, ? left");
    }
}
