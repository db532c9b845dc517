//! Ids of one payment: which payment an id leads to, and which other ids lead there.

use crate::record::Scope;
use crate::store::Store;
use anyhow::{Context, Result};
use sqlx::{AssertSqlSafe, Row};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Ids in one statement; SQLite allows far more, and a statement stays readable in a log.
const BATCH_IDS: usize = 500;

/// Steps from an id to its payment: session → invoice → charge → payment intent.
const CHAIN_STEPS_MAX: usize = 4;

/// For each id of `scope` that has an alias: the payment that it leads to at the end of the chain, and
/// whether it anchors effects of its own (refund, dispute). Ids without an alias are left out.
///
/// # Errors
/// When the store cannot be read.
pub async fn resolve(store: &Store, scope: &Scope, ids: &[&str]) -> Result<HashMap<String, (String, bool)>> {
    const SQL: &str = include_str!("../../queries/store/alias_lookup.sql");
    let mut found: HashMap<String, (String, bool)> = HashMap::new();
    let mut step_of: BTreeMap<String, String> = BTreeMap::new();
    let mut asked: BTreeSet<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let mut to_ask = asked.clone();
    for step in 0..CHAIN_STEPS_MAX {
        let rows = lookup(store, SQL, scope, &to_ask).await?;
        to_ask.clear();
        for (alias, root, is_part) in rows {
            if asked.insert(root.clone()) {
                to_ask.insert(root.clone());
            }
            if step == 0 {
                found.insert(alias.clone(), (root.clone(), is_part));
            }
            step_of.insert(alias, root);
        }
        if to_ask.is_empty() {
            break;
        }
    }
    for (root, _) in found.values_mut() {
        for _ in 0..CHAIN_STEPS_MAX {
            match step_of.get(root) {
                Some(next) if next != root => root.clone_from(next),
                _ => break,
            }
        }
    }
    Ok(found)
}

/// The ids with everything that leads to the same payments, so that a local row is found whichever of
/// them it carries.
///
/// # Errors
/// When the store cannot be read.
pub async fn known_as(store: &Store, scope: &Scope, ids: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    const SQL: &str = include_str!("../../queries/store/alias_reverse.sql");
    let texts: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut all = ids.clone();
    all.extend(resolve(store, scope, &texts).await?.into_values().map(|(root, _)| root));
    let mut level = all.clone();
    for _ in 0..CHAIN_STEPS_MAX {
        let rows = lookup(store, SQL, scope, &level).await?;
        level = rows.into_iter().map(|(alias, _, _)| alias).filter(|alias| !all.contains(alias)).collect();
        if level.is_empty() {
            break;
        }
        all.extend(level.iter().cloned());
    }
    Ok(all)
}

async fn lookup(
    store: &Store,
    sql: &str,
    scope: &Scope,
    ids: &BTreeSet<String>,
) -> Result<Vec<(String, String, bool)>> {
    let ids: Vec<&String> = ids.iter().collect();
    let mut found = Vec::new();
    for batch in ids.chunks(BATCH_IDS) {
        let sql = sql.replace("($4)", &placeholders(4, batch.len()));
        let mut query = sqlx::query(AssertSqlSafe(sql)).persistent(false);
        query = query.bind(scope.provider.to_string());
        query = query.bind(scope.account.to_string());
        query = query.bind(scope.mode.to_string());
        for id in batch {
            query = query.bind((*id).clone());
        }
        for row in query.fetch_all(store.pool()).await.context("read aliases")? {
            let is_part: i64 = row.try_get("is_part").context("read aliases")?;
            found.push((row.try_get("alias_id")?, row.try_get("root_id")?, is_part != 0));
        }
    }
    Ok(found)
}

/// `($4, $5, $6)`: `count` placeholders from `$first` on.
pub(super) fn placeholders(first: usize, count: usize) -> String {
    let numbered: Vec<String> = (first..first + count).map(|number| format!("${number}")).collect();
    format!("({})", numbered.join(", "))
}
