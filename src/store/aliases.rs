//! Which ids name the same payment.

use super::batch::{CHUNK_ROWS, chunks, is_storable, repeat_values};
use super::{Database, LOCK_ATTEMPTS, Store, is_busy};
use crate::record::{Alias, Scope};
use anyhow::{Context, Result};
use sqlx::Row;
use std::collections::{BTreeMap, BTreeSet};

/// Links that are followed from one id: session → invoice → payment intent, and one to spare.
const CHAIN_MAX: usize = 4;

/// Where an id leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasTarget {
    /// The group.
    pub root_id: String,
    /// Whether the id anchors effects of its own (refund, dispute).
    pub is_part: bool,
}

/// Keeps aliases; the newest word wins.
///
/// # Errors
/// When the store cannot be written.
pub async fn save_aliases(store: &Store, aliases: &[Alias]) -> Result<()> {
    // One statement must not name a key twice.
    let unique: BTreeMap<(&Scope, &str), &Alias> =
        aliases.iter().map(|alias| ((&alias.scope, alias.alias_id.as_str()), alias)).collect();
    let rows: Vec<&Alias> = unique.into_values().collect();
    let mut attempt = 1;
    loop {
        match try_save_aliases(store, &rows).await {
            Err(error) if attempt < LOCK_ATTEMPTS && is_busy(&error) => attempt += 1,
            other => return other,
        }
    }
}

/// Aliases with distinct keys, in key order. The keys alone decide, so no other writer is waited for.
async fn try_save_aliases(store: &Store, rows: &[&Alias]) -> Result<()> {
    let mut tx = store.begin().await?;
    for chunk in chunks(rows) {
        let sql = repeat_values(
            Database::of(&tx),
            include_str!("../../queries/store/alias_upsert.sql"),
            chunk.len(),
        );
        let mut query = sqlx::query(sql);
        for alias in chunk {
            query = query
                .bind(&*alias.scope.provider)
                .bind(&*alias.scope.account)
                .bind(&*alias.scope.mode)
                .bind(&*alias.alias_id)
                .bind(&*alias.root_id)
                .bind(i64::from(alias.is_part));
        }
        query.fetch_all(&mut *tx).await.context("keep aliases")?;
    }
    tx.commit().await.context("keep aliases")
}

/// Where ids lead, chains followed to their end. Ids that lead nowhere are absent.
///
/// # Errors
/// When the store cannot be read.
pub async fn resolve(
    store: &Store,
    scope: &Scope,
    ids: &BTreeSet<String>,
) -> Result<BTreeMap<String, AliasTarget>> {
    let mut found: BTreeMap<String, AliasTarget> = links(store, scope, ids).await?;
    for _ in 1..CHAIN_MAX {
        let open: BTreeSet<String> = found.values().map(|target| target.root_id.clone()).collect();
        let further = links(store, scope, &open).await?;
        if further.is_empty() {
            break;
        }
        for target in found.values_mut() {
            if let Some(next) = further.get(&target.root_id) {
                target.root_id.clone_from(&next.root_id);
            }
        }
    }
    Ok(found)
}

async fn links(
    store: &Store,
    scope: &Scope,
    ids: &BTreeSet<String>,
) -> Result<BTreeMap<String, AliasTarget>> {
    let mut found = BTreeMap::new();
    let ids: Vec<&String> = ids.iter().filter(|id| is_storable(id)).collect();
    for chunk in ids.chunks(CHUNK_ROWS) {
        for row in select(store, scope, include_str!("../../queries/store/alias_of_ids.sql"), chunk).await? {
            found.insert(row.alias_id, AliasTarget { root_id: row.root_id, is_part: row.is_part });
        }
    }
    found.retain(|id, target| *id != target.root_id);
    Ok(found)
}

/// All ids that lead to each of these roots, chains included.
///
/// # Errors
/// When the store cannot be read.
pub async fn aliases_of_roots(store: &Store, scope: &Scope, roots: &BTreeSet<String>) -> Result<Vec<Alias>> {
    let mut found: BTreeMap<String, Alias> = BTreeMap::new();
    let mut root_of: BTreeMap<String, String> =
        roots.iter().map(|root| (root.clone(), root.clone())).collect();
    for _ in 0..CHAIN_MAX {
        let asked: Vec<&String> = root_of.keys().filter(|root| is_storable(root)).collect();
        let mut next = BTreeMap::new();
        for chunk in asked.chunks(CHUNK_ROWS) {
            for row in
                select(store, scope, include_str!("../../queries/store/alias_of_roots.sql"), chunk).await?
            {
                let Some(root_id) = root_of.get(&row.root_id) else { continue };
                if row.alias_id == row.root_id || found.contains_key(&row.alias_id) {
                    continue;
                }
                next.insert(row.alias_id.clone(), root_id.clone());
                let alias = Alias {
                    scope: scope.clone(),
                    alias_id: row.alias_id.clone(),
                    root_id: root_id.clone(),
                    is_part: row.is_part,
                };
                found.insert(row.alias_id, alias);
            }
        }
        if next.is_empty() {
            break;
        }
        root_of = next;
    }
    Ok(found.into_values().collect())
}

/// The ids with everything that leads to the same payments, so that a local row is found whichever of
/// them it carries. An invoice that several payments paid leads to none of them.
///
/// # Errors
/// When the store cannot be read.
pub async fn known_as(store: &Store, scope: &Scope, ids: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut all = ids.clone();
    all.extend(resolve(store, scope, ids).await?.into_values().map(|target| target.root_id));
    let others = aliases_of_roots(store, scope, &all).await?;
    all.extend(others.into_iter().map(|alias| alias.alias_id));
    Ok(all)
}

struct Link {
    alias_id: String,
    root_id: String,
    is_part: bool,
}

async fn select(store: &Store, scope: &Scope, statement: &'static str, ids: &[&String]) -> Result<Vec<Link>> {
    let mut query = sqlx::query(repeat_values(store.database(), statement, ids.len()))
        .bind(scope.provider.to_string())
        .bind(scope.account.to_string())
        .bind(scope.mode.to_string());
    for id in ids {
        query = query.bind((*id).clone());
    }
    let rows = query.fetch_all(store.pool()).await.context("read aliases")?;
    let mut links = Vec::with_capacity(rows.len());
    for row in rows {
        links.push(Link {
            alias_id: row.try_get("alias_id")?,
            root_id: row.try_get("root_id")?,
            is_part: row.try_get::<i64, _>("is_part")? != 0,
        });
    }
    Ok(links)
}
