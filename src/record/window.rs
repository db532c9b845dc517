//! Windows and instants: half-open `[from, until)` in integer Unix microseconds. Dates mean whole
//! days in the finance time zone; the host's zone never matters.

use chrono::{DateTime, Days, LocalResult, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};
use chrono_tz::Tz;
use thiserror::Error;

/// Microseconds in a second.
pub const SECOND_US: i64 = 1_000_000;

/// The half-open period that a run answers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// First instant inside, Unix µs.
    pub from_us: i64,
    /// First instant after, Unix µs.
    pub until_us: i64,
}

impl Window {
    /// Whether an instant lies inside.
    #[must_use]
    pub const fn contains(&self, at_us: i64) -> bool {
        self.from_us <= at_us && at_us < self.until_us
    }
}

/// Why a text is no window bound.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WindowError {
    /// Neither a date nor an instant with offset.
    #[error("`{0}` is neither a date (2024-05-01) nor an instant with offset (2024-05-01T03:00:00-03:00)")]
    Unreadable(String),
    /// A time without an offset.
    #[error("`{0}` has a time but no offset; write it with one, such as 2024-05-01T03:00:00Z")]
    NoOffset(String),
    /// Not a month.
    #[error("`{0}` is not a month; write it as 2024-05")]
    NotAMonth(String),
    /// The zone is unknown.
    #[error("`{0}` is not a time zone of the IANA database, such as America/Sao_Paulo")]
    UnknownZone(String),
    /// The day does not begin as a day does there.
    #[error("{day} has no usable midnight in {zone}: {why}; give an instant with offset instead")]
    NoMidnight {
        /// The day.
        day: NaiveDate,
        /// The zone.
        zone: String,
        /// What the clocks did.
        why: &'static str,
    },
    /// Outside of what a run can hold.
    #[error("`{0}` lies outside of the years 1970 to 9999")]
    OutOfRange(String),
}

/// Reads an IANA zone name.
///
/// # Errors
/// When the name is unknown.
pub fn parse_zone(name: &str) -> Result<Tz, WindowError> {
    name.parse::<Tz>().map_err(|_| WindowError::UnknownZone(name.to_owned()))
}

/// First instant of a day in a zone, Unix µs.
///
/// Where clocks jump over midnight the day begins at its first existing instant; where midnight
/// comes twice it begins at the earlier one. Both are exact readings of "whole day".
///
/// # Errors
/// When no instant of that day can be found.
pub fn day_start(day: NaiveDate, zone: Tz) -> Result<i64, WindowError> {
    let midnight = day.and_time(NaiveTime::MIN);
    for quarter_hours in 0..=8 {
        let wall = midnight + chrono::Duration::minutes(15 * quarter_hours);
        match zone.from_local_datetime(&wall) {
            LocalResult::Single(at) => return Ok(at.timestamp_micros()),
            LocalResult::Ambiguous(first, _) => return Ok(first.timestamp_micros()),
            LocalResult::None => {}
        }
    }
    Err(WindowError::NoMidnight { day, zone: zone.name().to_owned(), why: "the clocks skip it" })
}

/// A bound given by a person: a date (whole day in `zone`) or an instant with offset.
///
/// With `is_end` a date means the end of that day, so that `--until 2026-01-31` has the whole day.
///
/// # Errors
/// When the text is neither, has a time without offset, or lies outside of 1970–9999.
pub fn parse_bound(text: &str, zone: Tz, is_end: bool) -> Result<i64, WindowError> {
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        let day = if is_end { day.checked_add_days(Days::new(1)) } else { Some(day) };
        let day = day.ok_or_else(|| WindowError::OutOfRange(text.to_owned()))?;
        return in_range(day_start(day, zone)?, text);
    }
    parse_instant(text)
}

/// The window of a month `YYYY-MM` in `zone`.
///
/// # Errors
/// When the text is no month.
pub fn parse_month(text: &str, zone: Tz) -> Result<Window, WindowError> {
    let bad = || WindowError::NotAMonth(text.to_owned());
    if text.len() != 7 {
        return Err(bad());
    }
    let first = NaiveDate::parse_from_str(&format!("{text}-01"), "%Y-%m-%d").map_err(|_| bad())?;
    let next = first.checked_add_months(Months::new(1)).ok_or_else(bad)?;
    Ok(Window {
        from_us: in_range(day_start(first, zone)?, text)?,
        until_us: in_range(day_start(next, zone)?, text)?,
    })
}

/// Reads an instant: RFC 3339 with offset (also `-0300`), to Unix µs. A leap second `:60` is read
/// as the first instant of the next minute.
///
/// # Errors
/// When the text is no instant, or has no offset.
pub fn parse_instant(text: &str) -> Result<i64, WindowError> {
    let trimmed = text.trim();
    let normal = trimmed.replacen(' ', "T", 1);
    for format in ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z"] {
        if let Ok(at) = DateTime::parse_from_str(&normal.replace('Z', "+00:00"), format) {
            return in_range(at.timestamp_micros(), text);
        }
    }
    for format in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"] {
        if NaiveDateTime::parse_from_str(&normal, format).is_ok() {
            return Err(WindowError::NoOffset(trimmed.to_owned()));
        }
    }
    Err(WindowError::Unreadable(trimmed.chars().take(60).collect()))
}

fn in_range(at_us: i64, text: &str) -> Result<i64, WindowError> {
    const YEAR_10000_US: i64 = 253_402_300_800 * SECOND_US;
    if (0..YEAR_10000_US).contains(&at_us) {
        Ok(at_us)
    } else {
        Err(WindowError::OutOfRange(text.to_owned()))
    }
}

/// An instant as RFC 3339 with the zone's offset, to the second, or to the microsecond where it
/// has a fraction.
#[must_use]
pub fn format_instant(at_us: i64, zone: Tz) -> String {
    match zone.timestamp_micros(at_us).single() {
        Some(at) if at_us % SECOND_US == 0 => at.format("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        Some(at) => at.format("%Y-%m-%dT%H:%M:%S%.6f%:z").to_string(),
        None => format!("{at_us}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAO_PAULO: Tz = Tz::America__Sao_Paulo;

    #[test]
    fn c51_month_end_is_local_to_the_finance_zone() {
        let january = parse_month("2026-01", SAO_PAULO).unwrap();
        assert_eq!(
            january,
            Window { from_us: 1_767_236_400 * SECOND_US, until_us: 1_769_914_800 * SECOND_US }
        );
        assert!(january.contains(1_769_913_000 * SECOND_US));
        let utc = parse_month("2026-01", Tz::UTC).unwrap();
        assert_eq!(utc.until_us, 1_769_904_000 * SECOND_US);
        assert!(!utc.contains(1_769_913_000 * SECOND_US));
    }

    #[test]
    fn c53_a_date_is_a_whole_day() {
        let from = parse_bound("2026-01-31", SAO_PAULO, false).unwrap();
        let until = parse_bound("2026-01-31", SAO_PAULO, true).unwrap();
        assert_eq!((from, until), (1_769_828_400 * SECOND_US, 1_769_914_800 * SECOND_US));
        let window = Window { from_us: from, until_us: until };
        let inside = [1_769_828_400, 1_769_871_600, 1_769_914_799, 1_769_914_800_i64]
            .into_iter()
            .filter(|second| window.contains(second * SECOND_US))
            .count();
        assert_eq!(inside, 3);
    }

    #[test]
    fn c55_one_instant_in_many_spellings() {
        for text in [
            "2026-01-31T22:30:00-0400",
            "2026-01-31T23:30:00.000-03:00",
            "2026-02-01T02:30:00Z",
            "2026-02-01 02:30:00+00:00",
        ] {
            assert_eq!(parse_instant(text), Ok(1_769_913_000 * SECOND_US), "{text}");
        }
        assert_eq!(parse_instant("2016-12-31T23:59:60Z"), Ok(1_483_228_800 * SECOND_US));
        assert!(matches!(parse_instant("2026-01-31T22:30:00"), Err(WindowError::NoOffset(_))));
        assert!(matches!(parse_instant("yesterday"), Err(WindowError::Unreadable(_))));
        assert!(matches!(parse_bound("2026-02-30", Tz::UTC, false), Err(WindowError::Unreadable(_))));
    }

    #[test]
    fn a_day_that_begins_at_one_in_the_morning_still_begins() {
        let day = NaiveDate::from_ymd_opt(2018, 11, 4).unwrap();
        assert_eq!(
            format_instant(day_start(day, SAO_PAULO).unwrap(), SAO_PAULO),
            "2018-11-04T01:00:00-02:00"
        );
    }
}
