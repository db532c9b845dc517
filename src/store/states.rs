//! Local statuses and the ids that name the same payment.

use super::Database;
use super::batch::{chunks, is_storable, repeat_values};
use super::ledger::Scopes;
use crate::record::{Scope, Status};
use anyhow::{Context, Result, anyhow};
use sqlx::{AnyConnection, Row};
use std::collections::{BTreeMap, BTreeSet};

/// A local status row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Status.
    pub status: Status,
    /// Refunded so far in minor units, where known.
    pub refunded_minor: Option<i64>,
    /// The provider's time of the status, Unix µs.
    pub provider_time_us: i64,
    /// Last change, Unix µs.
    pub updated_at_us: i64,
    /// Who changed it; `operator` marks a manual change.
    pub changed_by: String,
}

/// (scope, object id).
pub type ObjectKey = (Scope, String);

/// Ids that name the same payment as each of `roots`, by scope and root; the roots are not among them.
/// Aliases of aliases are followed (session → invoice → payment).
///
/// # Errors
/// When the store cannot be read.
pub async fn aliases(
    connection: &mut AnyConnection,
    roots: &BTreeSet<&str>,
) -> Result<BTreeMap<ObjectKey, BTreeSet<String>>> {
    const DEPTH_MAX: usize = 4;
    let mut found: BTreeMap<ObjectKey, BTreeSet<String>> = BTreeMap::new();
    let mut origins: BTreeMap<ObjectKey, String> = BTreeMap::new();
    let mut level: BTreeSet<String> = roots.iter().map(|root| (*root).to_owned()).collect();
    for _ in 0..DEPTH_MAX {
        let mut next = BTreeSet::new();
        for (scope, alias, parent) in alias_rows(connection, &level).await? {
            let origin = origins.get(&(scope.clone(), parent.clone())).cloned().unwrap_or(parent);
            if alias != origin
                && found.entry((scope.clone(), origin.clone())).or_default().insert(alias.clone())
            {
                origins.insert((scope, alias.clone()), origin);
                next.insert(alias);
            }
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    Ok(found)
}

async fn alias_rows(
    connection: &mut AnyConnection,
    roots: &BTreeSet<String>,
) -> Result<Vec<(Scope, String, String)>> {
    const ALIASES: &str = include_str!("../../queries/store/alias_whole_of_roots.sql");
    const INVOICES: &str = include_str!("../../queries/store/invoice_of_roots.sql");
    let roots: Vec<&String> = roots.iter().filter(|root| is_storable(root)).collect();
    let mut found = Vec::new();
    let mut scopes = Scopes::default();
    let parts = || chunks(&roots);
    for (sql, chunk) in parts().map(|chunk| (ALIASES, chunk)).chain(parts().map(|chunk| (INVOICES, chunk))) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), sql, chunk.len()));
        for root in chunk {
            query = query.bind(&***root);
        }
        let rows = query.fetch_all(&mut *connection).await.context("read aliases")?;
        for row in &rows {
            found.push((scopes.of(row)?, row.try_get("alias_id")?, row.try_get("root_id")?));
        }
    }
    Ok(found)
}

/// Local statuses of the named objects.
///
/// # Errors
/// When the store cannot be read or holds a status that the schema does not allow.
pub async fn states(
    connection: &mut AnyConnection,
    objects: &BTreeSet<ObjectKey>,
) -> Result<BTreeMap<ObjectKey, State>> {
    const SQL: &str = include_str!("../../queries/store/states_of_objects.sql");
    let objects: Vec<&ObjectKey> = objects.iter().collect();
    let mut found = BTreeMap::new();
    let mut scopes = Scopes::default();
    for chunk in chunks(&objects) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for (scope, object_id) in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**object_id);
        }
        let rows = query.fetch_all(&mut *connection).await.context("read local statuses")?;
        for row in &rows {
            let status: &str = row.try_get("status")?;
            let status = status.parse().map_err(|()| anyhow!("unknown local status `{status}`"))?;
            let state = State {
                status,
                refunded_minor: row.try_get("refunded_minor")?,
                provider_time_us: row.try_get("provider_time_us")?,
                updated_at_us: row.try_get("updated_at_us")?,
                changed_by: row.try_get("changed_by")?,
            };
            found.insert((scopes.of(row)?, row.try_get("object_id")?), state);
        }
    }
    Ok(found)
}

/// Writes a status if the row is still as it was read; false when it moved.
///
/// # Errors
/// When the store cannot be written.
pub async fn set_state(
    connection: &mut AnyConnection,
    (scope, object_id): &ObjectKey,
    state: &State,
    read_updated_at_us: Option<i64>,
) -> Result<bool> {
    const SQL: &str = include_str!("../../queries/store/state_set.sql");
    let mut query = sqlx::query(SQL).bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode);
    query = query.bind(&**object_id).bind(state.status.as_str()).bind(state.refunded_minor);
    query = query.bind(state.provider_time_us).bind(state.updated_at_us).bind(&*state.changed_by);
    query = query.bind(read_updated_at_us.unwrap_or(i64::MIN));
    let row = query.fetch_optional(&mut *connection).await;
    Ok(row.with_context(|| format!("set the status of {object_id}"))?.is_some())
}

/// Writes many statuses at once; a row that was changed later than its new `updated_at_us` stays as it is. Answers
/// the ids that were written.
///
/// # Errors
/// When the store cannot be written.
pub async fn set_states(
    connection: &mut AnyConnection,
    states: &BTreeMap<ObjectKey, State>,
) -> Result<BTreeSet<ObjectKey>> {
    const SQL: &str = include_str!("../../queries/store/state_set_many.sql");
    let rows: Vec<(&ObjectKey, &State)> = states.iter().collect();
    let mut written = BTreeSet::new();
    let mut scopes = Scopes::default();
    for chunk in chunks(&rows) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for ((scope, object_id), state) in chunk {
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&**object_id);
            query = query.bind(state.status.as_str()).bind(state.refunded_minor);
            query = query.bind(state.provider_time_us).bind(state.updated_at_us).bind(&*state.changed_by);
        }
        for row in &query.fetch_all(&mut *connection).await.context("set statuses")? {
            written.insert((scopes.of(row)?, row.try_get("object_id")?));
        }
    }
    Ok(written)
}
