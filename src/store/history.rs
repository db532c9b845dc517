//! The history of findings: when each was first seen, and whether it is new, still open, cleared, or
//! back again.
//!
//! The one thing to get right: a run clears only what it looked for. A finding of another account or
//! another window is not gone because this run does not have it.

use super::Database;
use super::batch::{CHUNK_ROWS, repeat_values, without_nul};
use super::life;
use crate::findings::life::{Act, ActKind, amounts, is_closed_before};
use crate::findings::{Finding, Standing};
use crate::record::{Scope, Status, Window};
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
    /// Which of its lives it is in, from 1: one more each time it comes back.
    pub opening: i64,
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
    let new = Seen { first_seen_us: now_us, standing: Standing::New, opening: 1 };
    let mut seen: BTreeMap<String, Seen> = findings.iter().map(|finding| (finding.id(), new)).collect();
    let ids: Vec<String> = seen.keys().cloned().collect();
    let acts = life::acts(connection, &ids).await?;
    for chunk in ids.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for id in chunk {
            query = query.bind(&**id);
        }
        let rows = query.fetch_all(&mut *connection).await.context("read the history of findings")?;
        for row in &rows {
            let id: String = row.try_get("finding_id")?;
            let opening: i64 = row.try_get("opening")?;
            let is_same_run = row.try_get::<&str, _>("run_id")? == run_id;
            let was_closed = acts.get(&id).is_some_and(|acts| is_closed_before(opening, acts, now_us));
            let (standing, openings) = match row.try_get::<&str, _>("status")? {
                "cleared" => (Standing::Reopened, 1),
                _ if was_closed => (Standing::Reopened, 1),
                "new" if is_same_run => (Standing::New, 0),
                "reopened" if is_same_run => (Standing::Reopened, 0),
                _ => (Standing::Open, 0),
            };
            let first_seen_us = row.try_get("first_seen_us")?;
            seen.insert(id, Seen { first_seen_us, standing, opening: opening + openings });
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
    let seen = look_up(connection, run_id, now_us, findings).await?;
    let mut turns = reopened(connection, run_id, now_us, &seen).await?;
    save(connection, run_id, now_us, findings, &seen).await?;
    if let Some(judged) = judged {
        turns.extend(clear(connection, run_id, now_us, judged).await?);
    }
    life::keep(connection, &turns).await?;
    Ok(seen)
}

async fn save(
    connection: &mut AnyConnection,
    run_id: &str,
    now_us: i64,
    findings: &[Finding],
    seen: &BTreeMap<String, Seen>,
) -> Result<()> {
    const SEEN: &str = include_str!("../../queries/store/finding_seen.sql");
    // One row per id: a statement may not touch a row twice.
    let by_id: BTreeMap<String, &Finding> = findings.iter().map(|finding| (finding.id(), finding)).collect();
    let rows: Vec<(&String, &&Finding)> = by_id.iter().collect();
    for chunk in rows.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SEEN, chunk.len()));
        for (id, finding) in chunk {
            let scope = &finding.scope;
            let Seen { first_seen_us, standing, opening } = seen[*id];
            query = query.bind(&***id).bind(finding.kind.as_str()).bind(&*scope.provider);
            query = query
                .bind(&*scope.account)
                .bind(&*scope.mode)
                .bind(without_nul(&finding.object_id).into_owned());
            query = query.bind(finding.judged_at_us).bind(first_seen_us).bind(now_us);
            query = query.bind(standing.to_string()).bind(run_id).bind(opening).bind(&*finding.cause);
            query = query.bind(finding.severity.to_string()).bind(without_nul(&finding.root_id).into_owned());
            query = query.bind(&*finding.currency).bind(&*finding.found_currency);
            query = query.bind(finding.expected_minor).bind(finding.found_minor);
            query = query.bind(finding.difference_minor());
            query = query.bind(finding.expected_state.map_or("", Status::as_str));
            query = query.bind(finding.found_state.map_or("", Status::as_str));
            query = query.bind(serde_json::to_string(&finding.event_ids)?);
            query = query.bind(serde_json::to_string(&finding.effect_ids)?);
            query = query.bind(finding.action.as_str()).bind(without_nul(&finding.note).into_owned());
            query = query.bind(amounts(finding));
        }
        query.fetch_all(&mut *connection).await.context("record the findings")?;
    }
    Ok(())
}

/// Findings that are back for the first time that a run sees them so.
async fn reopened(
    connection: &mut AnyConnection,
    run_id: &str,
    now_us: i64,
    seen: &BTreeMap<String, Seen>,
) -> Result<Vec<Act>> {
    let back: Vec<String> = seen
        .iter()
        .filter(|(_, seen)| seen.standing == Standing::Reopened)
        .map(|(id, _)| id.clone())
        .collect();
    let acts = life::acts(connection, &back).await?;
    let is_kept = |id: &String, opening: i64| {
        let kept = acts.get(id).into_iter().flatten();
        kept.into_iter().any(|act| act.kind == ActKind::Reopened && act.opening == opening)
    };
    let turns = back.iter().filter(|id| !is_kept(id, seen[*id].opening));
    Ok(turns.map(|id| turn(ActKind::Reopened, id.clone(), seen[id].opening, run_id, now_us)).collect())
}

async fn clear(
    connection: &mut AnyConnection,
    run_id: &str,
    now_us: i64,
    Judged { scopes, window }: &Judged,
) -> Result<Vec<Act>> {
    const CLEAR: &str = include_str!("../../queries/store/finding_clear.sql");
    let mut turns = Vec::new();
    for scope in scopes {
        let query = sqlx::query(CLEAR).bind(now_us).bind(run_id).bind(now_us).bind(run_id);
        let query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode);
        let query = query.bind(window.from_us).bind(window.until_us);
        for row in query.fetch_all(&mut *connection).await.context("clear findings that are gone")? {
            let id = row.try_get("finding_id")?;
            turns.push(turn(ActKind::Cleared, id, row.try_get("opening")?, run_id, now_us));
        }
    }
    turns.sort_by(|one, other| one.finding_id.cmp(&other.finding_id));
    Ok(turns)
}

/// What a run saw of a finding's life.
fn turn(kind: ActKind, finding_id: String, opening: i64, run_id: &str, at_us: i64) -> Act {
    Act {
        sequence: 0,
        finding_id,
        kind,
        opening,
        owner: String::new(),
        until_us: None,
        amounts: String::new(),
        run_id: run_id.to_owned(),
        reason: String::new(),
        actor: String::new(),
        at_us,
    }
}
