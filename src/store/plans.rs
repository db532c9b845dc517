//! The corrections that runs planned, kept so that a plan that comes back can be compared with what
//! was written.

use super::Database;
use super::batch::{CHUNK_ROWS, repeat_values, without_nul};
use super::ledger::Scopes;
use crate::correction::Correction;
use crate::findings::Action;
use crate::record::{EffectKind, Status};
use anyhow::{Context, Result, anyhow, ensure};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use std::str::FromStr;

/// A planned correction and the run that planned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The run.
    pub run_id: String,
    /// The correction.
    pub correction: Correction,
}

/// Keeps a run's plan. The connection must hold the write lock.
///
/// # Errors
/// When an id holds the list separator `|`, or the store cannot be written.
pub async fn save_plan(
    connection: &mut AnyConnection,
    run_id: &str,
    corrections: &[Correction],
) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/planned_insert.sql");
    for chunk in corrections.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for row in chunk {
            let scope = &row.scope;
            query =
                query.bind(&*row.correction_id).bind(run_id).bind(&*row.finding_id).bind(&*scope.provider);
            query = query.bind(&*scope.account).bind(&*scope.mode).bind(row.action.as_str());
            query =
                query.bind(stored(&row.effect_key)).bind(stored(&row.object_id)).bind(stored(&row.root_id));
            query = query.bind(row.effect.map_or("", EffectKind::as_str)).bind(&*row.currency);
            query = query.bind(row.amount_minor).bind(row.target_state.map_or("", Status::as_str));
            query = query.bind(stored(&row.reason)).bind(&*row.allowed_by).bind(joined(&row.event_ids)?);
            query = query.bind(joined(&row.effect_ids)?).bind(row.occurred_at_us);
        }
        query.fetch_all(&mut *connection).await.context("keep the plan")?;
    }
    Ok(())
}

/// Planned corrections by id, in no order; ids that no run of this store planned are left out.
///
/// # Errors
/// When the store cannot be read or holds a word that no plan has.
pub async fn planned(connection: &mut AnyConnection, ids: &[&str]) -> Result<Vec<Planned>> {
    const SQL: &str = include_str!("../../queries/store/planned_by_id.sql");
    let mut found = Vec::with_capacity(ids.len());
    let mut scopes = Scopes::default();
    for chunk in ids.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for id in chunk {
            query = query.bind(*id);
        }
        let rows = query.fetch_all(&mut *connection).await.context("read the plan")?;
        for row in &rows {
            found.push(Planned { run_id: row.try_get("run_id")?, correction: correction(&mut scopes, row)? });
        }
    }
    Ok(found)
}

fn correction(scopes: &mut Scopes, row: &AnyRow) -> Result<Correction> {
    let action: &str = row.try_get("action")?;
    let all = [Action::ReplayEvent, Action::ApplyEffect, Action::ReverseEntry, Action::SetState];
    let action = all.into_iter().find(|known| known.as_str() == action);
    Ok(Correction {
        correction_id: row.try_get("correction_id")?,
        finding_id: row.try_get("finding_id")?,
        scope: scopes.of(row)?,
        action: action.ok_or_else(|| anyhow!("a planned correction has an unknown action"))?,
        effect_key: row.try_get("effect_key")?,
        object_id: row.try_get("object_id")?,
        root_id: row.try_get("root_id")?,
        effect: word(row, "kind")?,
        currency: row.try_get("currency")?,
        amount_minor: row.try_get("amount_minor")?,
        target_state: word::<Status>(row, "target_state")?,
        reason: row.try_get("reason")?,
        allowed_by: row.try_get("allowed_by")?,
        event_ids: split(row.try_get("event_ids")?),
        effect_ids: split(row.try_get("effect_ids")?),
        occurred_at_us: row.try_get("occurred_at_us")?,
    })
}

fn word<T: FromStr<Err = ()>>(row: &AnyRow, column: &str) -> Result<Option<T>> {
    match row.try_get::<&str, _>(column)? {
        "" => Ok(None),
        text => {
            let known =
                text.parse().map_err(|()| anyhow!("a planned correction has the {column} `{text}`"))?;
            Ok(Some(known))
        }
    }
}

fn joined(ids: &[String]) -> Result<String> {
    for id in ids {
        ensure!(
            !id.is_empty() && !id.contains('|'),
            "the id `{id}` cannot stand in a plan: lists are joined by `|`"
        );
    }
    Ok(stored(&ids.join("|")))
}

/// An id that no store can hold is kept in another form, under which nothing is found: its row is not
/// carried out.
fn stored(text: &str) -> String {
    without_nul(text).into_owned()
}

fn split(text: &str) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { text.split('|').map(str::to_owned).collect() }
}
