//! Offline, the slices that earlier runs closed are the proof of what is stored.

use crate::config::ProviderSettings;
use crate::gather::{Coverage, CoverageStatus};
use crate::provider::Stream;
use crate::record::{Scope, Window};
use crate::store::Store;
use anyhow::{Context, Result};
use sqlx::Row;

/// One row per stream and range: covered where any run has read it, a gap elsewhere.
pub(super) async fn stored_coverage(
    store: &Store,
    provider: &ProviderSettings,
    accounts: &[String],
    streams: &[Stream],
    window: Window,
    now_us: i64,
) -> Result<Vec<Coverage>> {
    let mut rows = Vec::new();
    for account in accounts {
        let scope = provider.scope(account);
        for stream in streams {
            let closed = closed_ranges(store, &scope, stream.name).await?;
            let forgotten_us = stream.listed_from_us(now_us).unwrap_or(i64::MIN);
            for mut row in cover(&scope, stream.name, window, &closed, forgotten_us) {
                row.records = store.count_records(&scope, stream.name, row.from_us, row.until_us).await?;
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

async fn closed_ranges(store: &Store, scope: &Scope, stream: &str) -> Result<Vec<Window>> {
    let rows = sqlx::query(include_str!("../../../queries/store/closed_slices.sql"))
        .bind(scope.provider.to_string())
        .bind(scope.account.to_string())
        .bind(scope.mode.to_string())
        .bind(stream.to_owned())
        .fetch_all(store.pool())
        .await
        .with_context(|| format!("read the stored coverage of {stream}"))?;
    let mut ranges = Vec::with_capacity(rows.len());
    for row in rows {
        ranges.push(Window { from_us: row.try_get("from_us")?, until_us: row.try_get("until_us")? });
    }
    Ok(ranges)
}

/// Cuts the window into what the sorted ranges cover and what they leave. What the provider had
/// forgotten before `forgotten_us` anyway is not a gap.
fn cover(scope: &Scope, stream: &str, window: Window, closed: &[Window], forgotten_us: i64) -> Vec<Coverage> {
    let row = |from_us: i64, until_us: i64, status: CoverageStatus, cause: &str| Coverage {
        scope: scope.clone(),
        stream: stream.to_owned(),
        from_us,
        until_us,
        status,
        cause: cause.to_owned(),
        slices: 0,
        pages: 0,
        records: 0,
    };
    let hole = |from_us: i64, until_us: i64| -> Vec<Coverage> {
        let edge_us = forgotten_us.clamp(from_us, until_us);
        let forgotten = row(from_us, edge_us, CoverageStatus::NotListed, "retention");
        let unread = row(edge_us, until_us, CoverageStatus::Gap, "not_stored");
        [forgotten, unread].into_iter().filter(|row| row.from_us < row.until_us).collect()
    };
    let mut rows: Vec<Coverage> = Vec::new();
    let mut reached_us = window.from_us;
    for range in
        closed.iter().filter(|range| range.until_us > window.from_us && range.from_us < window.until_us)
    {
        let until_us = range.until_us.min(window.until_us);
        if range.from_us > reached_us {
            rows.extend(hole(reached_us, range.from_us));
            reached_us = range.from_us;
        }
        if until_us > reached_us {
            match rows.last_mut().filter(|last| last.status == CoverageStatus::Covered) {
                Some(last) => last.until_us = until_us,
                None => rows.push(row(reached_us, until_us, CoverageStatus::Covered, "")),
            }
            reached_us = until_us;
        }
    }
    if reached_us < window.until_us {
        rows.extend(hole(reached_us, window.until_us));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_gaps_unless_the_provider_has_forgotten_them() {
        let scope = Scope::new("stripe", "", "live");
        let window = Window { from_us: 0, until_us: 100 };
        let range = |from_us, until_us| Window { from_us, until_us };
        let rows = cover(&scope, "events", window, &[range(20, 40), range(30, 60), range(80, 90)], 10);
        let told: Vec<_> = rows.iter().map(|row| (row.from_us, row.until_us, row.status.as_str())).collect();
        let expected = [
            (0, 10, "not_listed"),
            (10, 20, "gap"),
            (20, 60, "covered"),
            (60, 80, "gap"),
            (80, 90, "covered"),
            (90, 100, "gap"),
        ];
        assert_eq!(told, expected);
    }
}
