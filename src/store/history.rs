//! The history of findings: when each was first seen, and whether it is new, still open, cleared, or
//! back again.
//!
//! The one thing to get right: a run clears only what it looked for. A finding of another account or
//! another window is not gone because this run does not have it.

use super::Database;
use super::batch::{CHUNK_ROWS, repeat_values, without_nul};
use crate::findings::{Finding, Standing};
use crate::record::{Scope, Window};
use anyhow::{Context, Result};
use sqlx::{AnyConnection, Row};
use std::collections::BTreeMap;

/// What a run judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The accounts.
    pub scopes: Vec<Scope>,
    /// The period.
    pub window: Window,
}

/// Where a finding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When a run first saw it, Unix µs.
    pub first_seen_us: i64,
    /// New, open or reopened.
    pub standing: Standing,
}

/// What earlier runs know of findings, by finding id; a run that is resumed is not an earlier run.
/// Writes nothing, so that reports can be written before the run is recorded.
///
/// # Errors
/// When the store cannot be read.
pub async fn look_up(
    connection: &mut AnyConnection,
    run_id: &str,
    now_us: i64,
    findings: &[Finding],
) -> Result<BTreeMap<String, Seen>> {
    const SQL: &str = include_str!("../../queries/store/finding_known.sql");
    let mut seen: BTreeMap<String, Seen> = findings
        .iter()
        .map(|finding| (finding.id(), Seen { first_seen_us: now_us, standing: Standing::New }))
        .collect();
    let ids: Vec<String> = seen.keys().cloned().collect();
    for chunk in ids.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for id in chunk {
            query = query.bind(&**id);
        }
        let rows = query.fetch_all(&mut *connection).await.context("read the history of findings")?;
        for row in &rows {
            let is_same_run = row.try_get::<&str, _>("run_id")? == run_id;
            let standing = match row.try_get::<&str, _>("status")? {
                "new" if is_same_run => Standing::New,
                "reopened" if is_same_run => Standing::Reopened,
                "cleared" => Standing::Reopened,
                _ => Standing::Open,
            };
            let first_seen_us = row.try_get("first_seen_us")?;
            seen.insert(row.try_get("finding_id")?, Seen { first_seen_us, standing });
        }
    }
    Ok(seen)
}

/// Records a run's findings and, where it saw everything (`judged` is there), clears those of its
/// accounts and window that it no longer has. The connection must hold the write lock.
///
/// # Errors
/// When the store cannot be written.
pub async fn record(
    connection: &mut AnyConnection,
    run_id: &str,
    now_us: i64,
    findings: &[Finding],
    judged: Option<&Judged>,
) -> Result<BTreeMap<String, Seen>> {
    const SEEN: &str = include_str!("../../queries/store/finding_seen.sql");
    const CLEAR: &str = include_str!("../../queries/store/finding_clear.sql");
    let seen = look_up(connection, run_id, now_us, findings).await?;
    // One row per id: a statement may not touch a row twice.
    let by_id: BTreeMap<String, &Finding> = findings.iter().map(|finding| (finding.id(), finding)).collect();
    let rows: Vec<(&String, &&Finding)> = by_id.iter().collect();
    for chunk in rows.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SEEN, chunk.len()));
        for (id, finding) in chunk {
            let scope = &finding.scope;
            let Seen { first_seen_us, standing } = seen[*id];
            query = query.bind(&***id).bind(finding.kind.as_str()).bind(&*scope.provider);
            query = query
                .bind(&*scope.account)
                .bind(&*scope.mode)
                .bind(without_nul(&finding.object_id).into_owned());
            query = query.bind(finding.judged_at_us).bind(first_seen_us).bind(now_us);
            query = query.bind(standing.to_string()).bind(run_id);
        }
        query.fetch_all(&mut *connection).await.context("record the findings")?;
    }
    let Some(Judged { scopes, window }) = judged else { return Ok(seen) };
    for scope in scopes {
        let query = sqlx::query(CLEAR).bind(now_us).bind(now_us).bind(run_id).bind(&*scope.provider);
        let query = query.bind(&*scope.account).bind(&*scope.mode).bind(window.from_us).bind(window.until_us);
        query.fetch_all(&mut *connection).await.context("clear findings that are gone")?;
    }
    Ok(seen)
}
