//! Findings as kept, and what persons did to them.
//!
//! The one thing to get right: an act is a row of its own, written under the write lock after looking at the finding under
//! it, and never changed. Two persons at once, or a run that ends meanwhile, lose nothing of each other.

use super::batch::{CHUNK_ROWS, repeat_values, without_nul};
use super::ledger::Scopes;
use super::{Database, Store};
use crate::findings::life::{Act, ActKind, Place};
use crate::record::Scope;
use anyhow::{Context, Result, anyhow};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use std::collections::BTreeMap;

/// A finding as the last run that saw it left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFinding {
    /// Its id.
    pub finding_id: String,
    /// Its kind's word.
    pub kind: String,
    /// Cause; empty where the kind says it all.
    pub cause: String,
    /// Severity's word; empty where no run has seen it since findings are kept whole.
    pub severity: String,
    /// Where it belongs.
    pub scope: Scope,
    /// What it is about.
    pub object_id: String,
    /// The payment; empty as for `severity`.
    pub root_id: String,
    /// Events named.
    pub event_ids: Vec<String>,
    /// Local rows named; for a duplicate the kept one first.
    pub effect_ids: Vec<String>,
    /// Lower-case ISO code, empty where there is no money.
    pub currency: String,
    /// Currency of `found_minor` where it is another one.
    pub found_currency: String,
    /// The provider's amount, signed minor units.
    pub expected_minor: Option<i64>,
    /// The local amount, signed minor units.
    pub found_minor: Option<i64>,
    /// Provider minus local in `currency`.
    pub difference_minor: Option<i64>,
    /// The provider's status, or empty.
    pub expected_state: String,
    /// The local status, or empty.
    pub found_state: String,
    /// What would put it right, or empty.
    pub correction: String,
    /// One sentence.
    pub note: String,
    /// What an acceptance holds on to.
    pub amounts: String,
    /// What of it lies in the window that was judged, Unix µs.
    pub occurred_at_us: i64,
    /// First run that saw it, Unix µs.
    pub first_seen_us: i64,
    /// Last run that saw it, Unix µs.
    pub last_seen_us: i64,
    /// When a run no longer found it, Unix µs; `None` while it is there.
    pub cleared_us: Option<i64>,
    /// That run.
    pub cleared_run: String,
    /// Where the last run left it: new, open, reopened or cleared.
    pub seen: Place,
    /// Its opening, from 1.
    pub opening: i64,
    /// The run that saw it last.
    pub run_id: String,
}

/// What to list, as far as the store can tell; empty texts and `None` mean any.
#[derive(Clone, Debug, Default)]
pub struct Listed<'a> {
    /// Kind.
    pub kind: &'a str,
    /// Severity.
    pub severity: &'a str,
    /// Account.
    pub account: Option<&'a str>,
    /// First seen at this instant at the latest, Unix µs.
    pub first_seen_until_us: Option<i64>,
    /// Also what has cleared.
    pub with_cleared: bool,
}

/// Findings, oldest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(store: &Store, listed: &Listed<'_>) -> Result<Vec<KeptFinding>> {
    let query = sqlx::query(include_str!("../../queries/store/finding_list.sql"));
    let query = query.bind(listed.kind.to_owned()).bind(listed.severity.to_owned());
    let query = query.bind(i64::from(listed.account.is_none()));
    let query = query.bind(listed.account.unwrap_or_default().to_owned());
    let query = query.bind(listed.first_seen_until_us.unwrap_or(i64::MAX));
    let rows = query.bind(i64::from(listed.with_cleared)).fetch_all(store.pool()).await;
    kept(&rows.map_err(earlier)?)
}

/// Findings whose id begins with these hexadecimal digits, ten at most.
///
/// # Errors
/// When the store cannot be read.
pub async fn beginning_with(connection: &mut AnyConnection, digits: &str) -> Result<Vec<KeptFinding>> {
    let query = sqlx::query(include_str!("../../queries/store/finding_find.sql"));
    // `g` follows every hexadecimal digit.
    let rows = query.bind(digits).bind(format!("{digits}g")).fetch_all(connection).await;
    kept(&rows.map_err(earlier)?)
}

/// Findings on an object, or on any object of a payment.
///
/// # Errors
/// When the store cannot be read.
pub async fn of_object(connection: &mut AnyConnection, id: &str) -> Result<Vec<KeptFinding>> {
    let query = sqlx::query(include_str!("../../queries/store/finding_of_object.sql"));
    let rows = query.bind(without_nul(id).into_owned()).fetch_all(connection).await;
    kept(&rows.map_err(earlier)?)
}

/// What was done to these findings, oldest first, by finding.
///
/// # Errors
/// When the store cannot be read.
pub async fn acts(connection: &mut AnyConnection, ids: &[String]) -> Result<BTreeMap<String, Vec<Act>>> {
    const SQL: &str = include_str!("../../queries/store/finding_actions.sql");
    let mut found: BTreeMap<String, Vec<Act>> = BTreeMap::new();
    for chunk in ids.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for id in chunk {
            query = query.bind(&**id);
        }
        for row in &query.fetch_all(&mut *connection).await.map_err(earlier)? {
            let act = act(row)?;
            found.entry(act.finding_id.clone()).or_default().push(act);
        }
    }
    Ok(found)
}

/// Keeps acts in this order; their `sequence` is given here. The connection must hold the write lock.
///
/// # Errors
/// When the store cannot be written.
pub async fn keep(connection: &mut AnyConnection, acts: &[Act]) -> Result<()> {
    const LAST: &str = include_str!("../../queries/store/finding_action_last.sql");
    const INSERT: &str = include_str!("../../queries/store/finding_action_insert.sql");
    if acts.is_empty() {
        return Ok(());
    }
    let last =
        sqlx::query(LAST).fetch_optional(&mut *connection).await.context("read what was done before")?;
    let mut sequence: i64 = last.map(|row| row.try_get("sequence")).transpose()?.unwrap_or(0);
    for chunk in acts.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), INSERT, chunk.len()));
        for act in chunk {
            sequence += 1;
            query = query.bind(sequence).bind(&*act.finding_id).bind(act.kind.as_str()).bind(act.opening);
            query = query.bind(&*act.owner).bind(act.until_us).bind(&*act.amounts).bind(&*act.run_id);
            query = query.bind(&*act.reason).bind(&*act.actor).bind(act.at_us);
        }
        query.fetch_all(&mut *connection).await.context("keep what was done to findings")?;
    }
    Ok(())
}

/// A correction that a run planned for a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFor {
    /// The run.
    pub run_id: String,
    /// When it began, Unix µs.
    pub at_us: i64,
    /// Action.
    pub action: String,
    /// Effect key.
    pub effect_key: String,
    /// Lower-case ISO code, or empty.
    pub currency: String,
    /// Signed minor units.
    pub amount_minor: i64,
    /// Status to set, or empty.
    pub target_state: String,
}

/// What became of a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedOut {
    /// The run that planned it.
    pub plan_run_id: String,
    /// Action.
    pub action: String,
    /// Effect key.
    pub effect_key: String,
    /// Outcome's word.
    pub outcome: String,
    /// When, Unix µs.
    pub at_us: i64,
    /// Who; empty where it was not kept.
    pub actor: String,
}

/// What was planned for a finding and what became of it, each oldest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn corrections(
    connection: &mut AnyConnection,
    finding_id: &str,
) -> Result<(Vec<PlannedFor>, Vec<CarriedOut>)> {
    let query = sqlx::query(include_str!("../../queries/store/planned_by_finding.sql"));
    let mut planned = Vec::new();
    for row in &query.bind(finding_id).fetch_all(&mut *connection).await.map_err(earlier)? {
        planned.push(PlannedFor {
            run_id: row.try_get("run_id")?,
            at_us: row.try_get("started_at_us")?,
            action: row.try_get("action")?,
            effect_key: row.try_get("effect_key")?,
            currency: row.try_get("currency")?,
            amount_minor: row.try_get("amount_minor")?,
            target_state: row.try_get("target_state")?,
        });
    }
    let query = sqlx::query(include_str!("../../queries/store/correction_by_finding.sql"));
    let mut done = Vec::new();
    for row in &query.bind(finding_id).fetch_all(&mut *connection).await.map_err(earlier)? {
        done.push(CarriedOut {
            plan_run_id: row.try_get("plan_run_id")?,
            action: row.try_get("action")?,
            effect_key: row.try_get("effect_key")?,
            outcome: row.try_get("outcome")?,
            at_us: row.try_get("applied_at_us")?,
            actor: row.try_get("actor")?,
        });
    }
    Ok((planned, done))
}

/// A store that was only to be looked at may be one that no run of this version has brought up to date.
fn earlier(error: sqlx::Error) -> anyhow::Error {
    let text = error.to_string();
    let is_earlier =
        ["no such table", "no such column", "does not exist"].iter().any(|told| text.contains(told));
    let error = anyhow::Error::from(error);
    if is_earlier {
        return error.context(
            "the store is of an earlier version, which kept less of findings: run `recon` once with a user that may write",
        );
    }
    error.context("read the findings")
}

fn kept(rows: &[AnyRow]) -> Result<Vec<KeptFinding>> {
    let mut scopes = Scopes::default();
    rows.iter().map(|row| finding(&mut scopes, row)).collect()
}

fn finding(scopes: &mut Scopes, row: &AnyRow) -> Result<KeptFinding> {
    let ids = |column: &str| -> Result<Vec<String>> {
        let text: &str = row.try_get(column)?;
        Ok(if text.is_empty() { Vec::new() } else { serde_json::from_str(text).unwrap_or_default() })
    };
    Ok(KeptFinding {
        finding_id: row.try_get("finding_id")?,
        kind: row.try_get("kind")?,
        cause: row.try_get("cause")?,
        severity: row.try_get("severity")?,
        scope: scopes.of(row)?,
        object_id: row.try_get("object_id")?,
        root_id: row.try_get("root_id")?,
        event_ids: ids("event_ids")?,
        effect_ids: ids("effect_ids")?,
        currency: row.try_get("currency")?,
        found_currency: row.try_get("found_currency")?,
        expected_minor: row.try_get("expected_minor")?,
        found_minor: row.try_get("found_minor")?,
        difference_minor: row.try_get("difference_minor")?,
        expected_state: row.try_get("expected_state")?,
        found_state: row.try_get("found_state")?,
        correction: row.try_get("correction")?,
        note: row.try_get("note")?,
        amounts: row.try_get("amounts")?,
        occurred_at_us: row.try_get("occurred_at_us")?,
        first_seen_us: row.try_get("first_seen_us")?,
        last_seen_us: row.try_get("last_seen_us")?,
        cleared_us: row.try_get("cleared_us")?,
        cleared_run: row.try_get("cleared_run")?,
        seen: match row.try_get::<&str, _>("status")? {
            "new" => Place::New,
            "reopened" => Place::Reopened,
            "cleared" => Place::Cleared,
            _ => Place::Open,
        },
        opening: row.try_get("opening")?,
        run_id: row.try_get("run_id")?,
    })
}

fn act(row: &AnyRow) -> Result<Act> {
    let word: &str = row.try_get("action")?;
    let kind = ActKind::ALL.into_iter().find(|kind| kind.as_str() == word);
    Ok(Act {
        sequence: row.try_get("sequence")?,
        finding_id: row.try_get("finding_id")?,
        kind: kind.ok_or_else(|| anyhow!("a finding has the unknown act `{word}`"))?,
        opening: row.try_get("opening")?,
        owner: row.try_get("owner")?,
        until_us: row.try_get("until_us")?,
        amounts: row.try_get("amounts")?,
        run_id: row.try_get("run_id")?,
        reason: row.try_get("reason")?,
        actor: row.try_get("actor")?,
        at_us: row.try_get("at_us")?,
    })
}
