//! From the parts of a stream's slices to its rows of `coverage.csv`. Pure.

use super::chain::PartState;
use crate::record::{Coverage, CoverageStatus, SECOND_US, Scope, Window};

/// What is known of a range, in whole seconds.
pub(super) struct Known {
    pub from: i64,
    pub until: i64,
    pub state: PartState,
    pub pages: u64,
}

/// Rows for `window`: what the provider no longer lists, then every range that was or was not seen, neighbours
/// of one kind joined. `bounds` = first second, end second, first second that was asked for. `unread` is the
/// cause of what stayed open.
pub(super) fn cover(
    scope: &Scope,
    stream: &str,
    window: Window,
    bounds: (i64, i64, i64),
    mut known: Vec<Known>,
    unread: &'static str,
) -> Vec<Coverage> {
    let (first, end, floor) = bounds;
    let row = |from: i64, until: i64, status, cause: &str, slices, pages| Coverage {
        scope: scope.clone(),
        stream: stream.to_owned(),
        from_us: if from == first { window.from_us } else { from * SECOND_US },
        until_us: if until == end { window.until_us } else { until * SECOND_US },
        status,
        cause: cause.to_owned(),
        slices,
        pages,
        records: 0,
    };
    let mut rows: Vec<Coverage> = Vec::new();
    if first < floor || first == end {
        let is_empty = first == end;
        let (status, cause) =
            if is_empty { (CoverageStatus::Covered, "") } else { (CoverageStatus::NotListed, "retention") };
        rows.push(row(first, floor, status, cause, 0, 0));
    }
    known.sort_by_key(|part| (part.from, part.until));
    let mut reached = floor;
    for part in known {
        let (status, cause) = match part.state {
            PartState::Closed => (CoverageStatus::Covered, ""),
            PartState::Gap(cause) => (CoverageStatus::Gap, cause),
            PartState::Open => (CoverageStatus::Gap, if unread.is_empty() { "unread" } else { unread }),
        };
        assert!(part.from == reached, "{stream}: [{reached}, {}) belongs to no slice or to two", part.from);
        reached = part.until;
        let next = row(part.from, part.until, status, cause, 1, part.pages);
        match rows.last_mut() {
            Some(last) if last.status == status && last.cause == cause => {
                last.until_us = next.until_us;
                last.slices += 1;
                last.pages += next.pages;
            }
            _ => rows.push(next),
        }
    }
    assert!(reached == end, "{stream}: [{reached}, {end}) belongs to no slice");
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined_and_bounds_are_the_windows_own() {
        let scope = Scope::new("stripe", "", "live");
        let window = Window { from_us: 9_500_000, until_us: 99_500_000 };
        let known = |from, until, state| Known { from, until, state, pages: 2 };
        let parts = vec![
            known(60, 100, PartState::Open),
            known(40, 50, PartState::Closed),
            known(50, 60, PartState::Closed),
            known(20, 40, PartState::Gap("cursor_lost")),
        ];
        let rows = cover(&scope, "events", window, (10, 100, 20), parts, "budget");
        let short: Vec<_> = rows
            .iter()
            .map(|row| (row.from_us, row.until_us, row.status, row.cause.as_str(), row.slices))
            .collect();
        assert_eq!(
            short,
            [
                (9_500_000, 20_000_000, CoverageStatus::NotListed, "retention", 0),
                (20_000_000, 40_000_000, CoverageStatus::Gap, "cursor_lost", 1),
                (40_000_000, 60_000_000, CoverageStatus::Covered, "", 2),
                (60_000_000, 99_500_000, CoverageStatus::Gap, "budget", 1),
            ]
        );
    }

    #[test]
    fn a_range_that_is_in_no_slice_is_a_fault_of_the_program() {
        let scope = Scope::new("stripe", "", "live");
        let window = Window { from_us: 0, until_us: 10_000_000 };
        let parts = vec![Known { from: 0, until: 9, state: PartState::Closed, pages: 1 }];
        let result = std::panic::catch_unwind(|| cover(&scope, "events", window, (0, 10, 0), parts, ""));
        assert!(result.is_err());
    }
}
