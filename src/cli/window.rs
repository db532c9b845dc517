//! From `--since`, `--until` and `--month` to the window that a run answers for. Pure.

use super::UsageError;
use crate::record::{SECOND_US, Window, WindowError, format_instant, parse_bound, parse_month};
use chrono_tz::Tz;
use std::time::Duration;

/// How far a window without `--since` reaches back behind the watermark: three days, for which Stripe
/// keeps retrying a delivery. What the run before counted as in flight is judged by a later one.
pub const OVERLAP_US: i64 = 3 * DAY_US;
const DAY_US: i64 = 86_400 * SECOND_US;

/// The window as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowSpec {
    /// `--since`.
    pub since: Option<String>,
    /// `--until`.
    pub until: Option<String>,
    /// `--month`.
    pub month: Option<String>,
}

/// The window that the arguments mean at `now_us`.
///
/// Dates are whole days in `zone`, so `--until 2024-05-03` has all of that day. The end is never later than
/// now minus `settle_delay`, in whole seconds; a later one is moved there. Without `--since` and `--month` the window begins
/// [`OVERLAP_US`] before `watermark` (Unix µs, provider time of finished work), or a day before its end
/// where there is none.
///
/// # Errors
/// When a bound cannot be read or does not exist, or the window is empty, inverted or in the future.
pub fn resolve_window(
    spec: &WindowSpec,
    zone: Tz,
    now_us: i64,
    settle_delay: Duration,
    watermark: Option<i64>,
) -> Result<Window, UsageError> {
    let delay_us = i64::try_from(settle_delay.as_micros()).unwrap_or(i64::MAX);
    let cut_off_us = whole_second(now_us.saturating_sub(delay_us));
    let latest = Latest { now_us, cut_off_us, zone };
    if let Some(month) = &spec.month {
        let window = parse_month(month, zone).map_err(|error| explain("--month", &error))?;
        return latest.bound(window, "--month", month);
    }
    let Some(since) = &spec.since else {
        // A watermark ahead of the cut-off comes from a clock that ran ahead; it must not empty the window.
        let from_us = watermark.map_or(cut_off_us - DAY_US, |at_us| at_us.min(cut_off_us) - OVERLAP_US);
        return Ok(Window { from_us: whole_second(from_us).max(0), until_us: cut_off_us.max(1) });
    };
    let from_us = parse_bound(since, zone, false).map_err(|error| explain("--since", &error))?;
    let until_us = match &spec.until {
        Some(until) => parse_bound(until, zone, true).map_err(|error| explain("--until", &error))?,
        None => i64::MAX,
    };
    if until_us < from_us {
        return Err(UsageError::new(
            format!(
                "the window is inverted: --until ends at {}, before --since at {}",
                format_instant(until_us, zone),
                format_instant(from_us, zone)
            ),
            "the earlier bound is --since",
        ));
    }
    if until_us == from_us {
        return Err(UsageError::new(
            format!("the window is empty: it begins and ends at {}", format_instant(from_us, zone)),
            "--until with a date has that whole day; with an instant it ends just before it",
        ));
    }
    latest.bound(Window { from_us, until_us }, "--since", since)
}

/// What `window`, as [`resolve_window`] has it, means where nobody is asked: a bound that nobody typed is where
/// what is stored ends. Without `--since` and `--month` that is `last`, the window of the last finished run;
/// else the end is moved to the watermark, `finished_us` (where there is none, to the end of `last`). An end
/// that was typed stays.
///
/// # Errors
/// When nothing of the window is stored.
pub fn stored_window(
    spec: &WindowSpec,
    window: Window,
    last: Window,
    finished_us: Option<i64>,
    zone: Tz,
) -> Result<Window, UsageError> {
    if spec.until.is_some() {
        return Ok(window);
    }
    if spec.since.is_none() && spec.month.is_none() {
        return Ok(last);
    }
    let stored_us = finished_us.unwrap_or(last.until_us);
    if window.from_us >= stored_us {
        return Err(UsageError::new(
            format!(
                "nothing of this window is stored: it begins at {}, and the finished runs end at {}",
                format_instant(window.from_us, zone),
                format_instant(stored_us, zone)
            ),
            "the same command without --offline reads it",
        ));
    }
    Ok(Window { until_us: window.until_us.min(stored_us), ..window })
}

/// The month that was asked for, where `window` is only a part of it.
#[must_use]
pub fn unfinished_month(spec: &WindowSpec, window: Window, zone: Tz) -> Option<&str> {
    let month = spec.month.as_deref()?;
    let whole = parse_month(month, zone).ok()?;
    (window.until_us < whole.until_us).then_some(month)
}

/// The second that an instant lies in: bounds that nobody typed should be easy to read.
const fn whole_second(at_us: i64) -> i64 {
    at_us - at_us.rem_euclid(SECOND_US)
}

struct Latest {
    now_us: i64,
    cut_off_us: i64,
    zone: Tz,
}

impl Latest {
    /// Moves the end to the cut-off, unless nothing is left.
    fn bound(&self, window: Window, argument: &str, text: &str) -> Result<Window, UsageError> {
        if window.from_us >= self.now_us {
            return Err(UsageError::new(
                format!(
                    "{argument} {text} lies in the future: it begins at {}, and now is {}",
                    format_instant(window.from_us, self.zone),
                    format_instant(self.now_us, self.zone)
                ),
                "there is nothing to reconcile yet",
            ));
        }
        if window.from_us >= self.cut_off_us {
            return Err(UsageError::new(
                format!(
                    "{argument} {text} is too recent: records younger than the settle delay, since {}, \
                     may still be invisible",
                    format_instant(self.cut_off_us, self.zone)
                ),
                "begin earlier, or wait",
            ));
        }
        Ok(Window { until_us: window.until_us.min(self.cut_off_us), ..window })
    }
}

fn explain(argument: &str, error: &WindowError) -> UsageError {
    let hint = match error {
        WindowError::Unreadable(text) if looks_like_a_date(text) => "there is no such day in the calendar",
        WindowError::Unreadable(_) | WindowError::OutOfRange(_) => {
            "write a day as 2024-05-01, or an instant as 2024-05-01T03:00:00-03:00"
        }
        WindowError::NoOffset(_) => "an hour without an offset can be two instants, or none",
        WindowError::NotAMonth(_) => "a year, a hyphen and a number from 01 to 12",
        WindowError::UnknownZone(_) | WindowError::NoMidnight { .. } => "",
    };
    UsageError::new(format!("{argument}: {error}"), hint)
}

fn looks_like_a_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut is_number = |length: usize| {
        parts.next().is_some_and(|part| part.len() == length && part.bytes().all(|b| b.is_ascii_digit()))
    };
    is_number(4) && is_number(2) && is_number(2) && text.len() == 10
}

/// The line that a run prints before anything else: window, zone and basis.
#[must_use]
pub fn describe_window(window: Window, zone: Tz, basis: crate::config::Basis) -> String {
    format!(
        "window from {} until {} (excluded), time zone {}, basis {}",
        format_instant(window.from_us, zone),
        format_instant(window.until_us, zone),
        zone.name(),
        basis.as_str()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAO_PAULO: Tz = Tz::America__Sao_Paulo;
    /// 2026-02-10T12:00:00Z.
    const NOW_US: i64 = 1_770_724_800 * SECOND_US;
    const DELAY: Duration = Duration::from_mins(5);

    fn spec(since: &str, until: &str) -> WindowSpec {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        WindowSpec { since: text(since), until: text(until), month: None }
    }

    fn month(text: &str) -> WindowSpec {
        WindowSpec { month: Some(text.to_owned()), ..WindowSpec::default() }
    }

    fn seconds(spec: &WindowSpec, zone: Tz) -> (i64, i64) {
        let window = resolve_window(spec, zone, NOW_US, DELAY, None).unwrap();
        (window.from_us / SECOND_US, window.until_us / SECOND_US)
    }

    fn error(spec: &WindowSpec, zone: Tz) -> String {
        resolve_window(spec, zone, NOW_US, DELAY, None).unwrap_err().to_string()
    }

    #[test]
    fn c51_a_month_is_local_to_the_finance_zone() {
        assert_eq!(seconds(&month("2026-01"), SAO_PAULO), (1_767_236_400, 1_769_914_800));
        assert_eq!(seconds(&month("2026-01"), Tz::UTC), (1_767_225_600, 1_769_904_000));
    }

    #[test]
    fn c53_the_last_day_is_whole() {
        assert_eq!(seconds(&spec("2026-01-31", "2026-01-31"), SAO_PAULO), (1_769_828_400, 1_769_914_800));
    }

    #[test]
    fn c55_one_instant_in_many_spellings_is_one_bound() {
        for text in ["2026-01-31T22:30:00-0400", "2026-01-31T23:30:00.000-03:00", "2026-02-01T02:30:00Z"] {
            assert_eq!(seconds(&spec(text, ""), Tz::UTC).0, 1_769_913_000, "{text}");
        }
        assert!(error(&spec("2026-01-31T22:30:00", ""), Tz::UTC).contains("no offset"));
    }

    #[test]
    fn the_end_is_never_later_than_now_minus_the_settle_delay() {
        let cut_off = NOW_US / SECOND_US - 300;
        assert_eq!(seconds(&spec("2026-02-01", ""), Tz::UTC).1, cut_off);
        assert_eq!(seconds(&spec("2026-02-01", "2030-01-01"), Tz::UTC).1, cut_off);
        assert_eq!(seconds(&month("2026-02"), Tz::UTC).1, cut_off);
        // One second before the cut-off is left alone.
        assert_eq!(seconds(&spec("2026-02-01", "2026-02-10T11:54:59Z"), Tz::UTC).1, cut_off - 1);
    }

    #[test]
    fn c25_without_since_the_window_begins_before_the_watermark_even_if_that_ran_ahead() {
        let cut_off_us = NOW_US - 300 * SECOND_US;
        let from = |watermark| {
            resolve_window(&WindowSpec::default(), Tz::UTC, NOW_US, DELAY, watermark).unwrap().from_us
        };
        assert_eq!(from(None), cut_off_us - DAY_US);
        assert_eq!(from(Some(NOW_US - 10 * DAY_US)), NOW_US - 10 * DAY_US - OVERLAP_US);
        assert_eq!(from(Some(NOW_US + 10 * DAY_US)), cut_off_us - OVERLAP_US);
    }

    #[test]
    fn a_month_that_is_not_over_is_told() {
        for (text, told) in [("2026-01", None), ("2026-02", Some("2026-02"))] {
            let window = resolve_window(&month(text), Tz::UTC, NOW_US, DELAY, None).unwrap();
            assert_eq!(unfinished_month(&month(text), window, Tz::UTC), told);
        }
        assert_eq!(
            unfinished_month(&spec("2026-02-01", ""), Window { from_us: 0, until_us: 1 }, Tz::UTC),
            None
        );
    }

    #[test]
    fn bounds_that_nobody_typed_are_whole_seconds_and_never_later() {
        let now_us = NOW_US + 123_456;
        let resolve =
            |spec: &WindowSpec, watermark| resolve_window(spec, Tz::UTC, now_us, DELAY, watermark).unwrap();
        let cut_off_us = NOW_US - 300 * SECOND_US;
        let ends = [WindowSpec::default(), spec("2026-02-01", ""), month("2026-02")];
        for spec in &ends {
            assert_eq!(resolve(spec, None).until_us, cut_off_us, "{spec:?}");
        }
        let from_us = resolve(&ends[0], Some(NOW_US - 10 * DAY_US + 999_999)).from_us;
        assert_eq!(from_us, NOW_US - 10 * DAY_US - OVERLAP_US);
    }

    #[test]
    fn offline_a_bound_that_nobody_typed_is_where_stored_work_ends() {
        let window = |from_us, until_us| Window { from_us, until_us };
        let last = window(100, 200);
        let resolve = |spec: &WindowSpec, asked, finished_us| {
            stored_window(spec, asked, last, finished_us, Tz::UTC).map_err(|error| error.to_string())
        };
        assert_eq!(resolve(&WindowSpec::default(), window(50, 900), Some(300)), Ok(last));
        assert_eq!(resolve(&spec("typed", ""), window(50, 900), Some(300)), Ok(window(50, 300)));
        assert_eq!(resolve(&spec("typed", ""), window(50, 900), None), Ok(window(50, 200)));
        assert_eq!(resolve(&spec("typed", "typed"), window(50, 900), Some(300)), Ok(window(50, 900)));
        // A month that is over ends as it does; the running one where stored work ends.
        assert_eq!(resolve(&month("typed"), window(50, 90), Some(300)), Ok(window(50, 90)));
        assert_eq!(resolve(&month("typed"), window(50, 900), Some(300)), Ok(window(50, 300)));
        let error = resolve(&spec("typed", ""), window(300, 900), Some(300)).unwrap_err();
        assert!(error.contains("nothing of this window is stored"), "{error}");
    }

    #[test]
    fn windows_that_cannot_be_say_why() {
        assert!(error(&spec("2026-03-01", ""), Tz::UTC).contains("lies in the future"));
        assert!(error(&spec("2026-02-10T11:58:00Z", ""), Tz::UTC).contains("too recent"));
        assert!(error(&spec("2026-02-05", "2026-02-03"), Tz::UTC).contains("inverted"));
        // Yesterday as the end of a window that begins today ends exactly where it begins.
        assert!(error(&spec("2026-02-05", "2026-02-04"), Tz::UTC).contains("empty"));
        assert!(error(&spec("2026-02-05T00:00:00Z", "2026-02-05T00:00:00Z"), Tz::UTC).contains("empty"));
        assert!(error(&month("2026-13"), Tz::UTC).contains("not a month"));
        assert!(error(&month("2026-03"), Tz::UTC).contains("lies in the future"));
        let missing = resolve_window(&spec("2026-02-30", ""), Tz::UTC, NOW_US, DELAY, None).unwrap_err();
        assert_eq!(missing.hint, "there is no such day in the calendar");
    }

    #[test]
    fn a_day_that_a_zone_skipped_is_refused() {
        // Samoa went from 29 to 31 December 2011.
        let text = error(&spec("2011-12-30", ""), Tz::Pacific__Apia);
        assert!(text.contains("no usable midnight in Pacific/Apia"), "{text}");
    }
}
