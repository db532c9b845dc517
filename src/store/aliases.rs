//! Which ids name the same payment.

use super::batch::{chunks, is_storable, repeat_values};
use super::{Database, LOCK_ATTEMPTS, Store, is_busy};
use crate::record::{Alias, Scope};
use anyhow::{Context, Result};
use sqlx::{AnyConnection, Row};
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

/// Keeps aliases; the newest word wins. What is kept already is not written again: most of what a record says was said
/// before, and a row that is written anew costs many times a look at it.
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
    let news = news(store, rows).await?;
    if news.is_empty() {
        return Ok(());
    }
    let mut tx = store.begin().await?;
    for chunk in chunks(&news) {
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

/// Those that are not kept with the same words.
async fn news<'a>(store: &Store, rows: &[&'a Alias]) -> Result<Vec<&'a Alias>> {
    const KEPT: &str = include_str!("../../queries/store/alias_kept.sql");
    let mut news = Vec::new();
    if rows.is_empty() {
        return Ok(news);
    }
    let mut tx = store.begin_read().await?;
    for same in rows.chunk_by(|one, other| one.scope == other.scope) {
        for chunk in chunks(same) {
            let ids: Vec<&String> = chunk.iter().map(|alias| &alias.alias_id).collect();
            let kept = select(&mut tx, &chunk[0].scope, KEPT, &ids).await?;
            let kept: BTreeMap<&str, &Link> =
                kept.iter().map(|link| (link.alias_id.as_str(), link)).collect();
            let is_kept = |alias: &Alias| {
                let link = kept.get(alias.alias_id.as_str());
                link.is_some_and(|link| link.root_id == alias.root_id && link.is_part == alias.is_part)
            };
            news.extend(chunk.iter().copied().filter(|alias| !is_kept(alias)));
        }
    }
    tx.commit().await.context("look for aliases")?;
    Ok(news)
}

/// Where ids lead, chains followed to their end. Ids that lead nowhere are absent. Nothing leads on from an id that
/// `is_final`, so it is not asked for.
///
/// # Errors
/// When the store cannot be read.
pub async fn resolve(
    store: &Store,
    scope: &Scope,
    ids: &BTreeSet<String>,
    is_final: fn(&str) -> bool,
) -> Result<BTreeMap<String, AliasTarget>> {
    let mut found = BTreeMap::new();
    if ids.iter().all(|id| is_final(id)) {
        return Ok(found);
    }
    let mut tx = store.begin_read().await?;
    found = links(&mut tx, scope, ids, is_final).await?;
    for _ in 1..CHAIN_MAX {
        let open: BTreeSet<String> = found.values().map(|target| target.root_id.clone()).collect();
        let further = links(&mut tx, scope, &open, is_final).await?;
        if further.is_empty() {
            break;
        }
        for target in found.values_mut() {
            if let Some(next) = further.get(&target.root_id) {
                target.root_id.clone_from(&next.root_id);
            }
        }
    }
    tx.commit().await.context("read aliases")?;
    Ok(found)
}

async fn links(
    connection: &mut AnyConnection,
    scope: &Scope,
    ids: &BTreeSet<String>,
    is_final: fn(&str) -> bool,
) -> Result<BTreeMap<String, AliasTarget>> {
    const OF_IDS: &str = include_str!("../../queries/store/alias_of_ids.sql");
    let mut found = BTreeMap::new();
    let ids: Vec<&String> = ids.iter().filter(|id| is_storable(id) && !is_final(id)).collect();
    for chunk in chunks(&ids) {
        for row in select(&mut *connection, scope, OF_IDS, chunk).await? {
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
    const OF_ROOTS: &str = include_str!("../../queries/store/alias_of_roots.sql");
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let mut tx = store.begin_read().await?;
    let mut found: BTreeMap<String, Alias> = BTreeMap::new();
    let mut root_of: BTreeMap<String, String> =
        roots.iter().map(|root| (root.clone(), root.clone())).collect();
    for _ in 0..CHAIN_MAX {
        let asked: Vec<&String> = root_of.keys().filter(|root| is_storable(root)).collect();
        let mut next = BTreeMap::new();
        for chunk in chunks(&asked) {
            for row in select(&mut tx, scope, OF_ROOTS, chunk).await? {
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
    tx.commit().await.context("read aliases")?;
    Ok(found.into_values().collect())
}

/// The ids with everything that leads to the same payments, so that a local row is found whichever of
/// them it carries. An invoice that several payments paid leads to none of them.
///
/// # Errors
/// When the store cannot be read.
pub async fn known_as(store: &Store, scope: &Scope, ids: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut all = ids.clone();
    all.extend(resolve(store, scope, ids, |_| false).await?.into_values().map(|target| target.root_id));
    let others = aliases_of_roots(store, scope, &all).await?;
    all.extend(others.into_iter().map(|alias| alias.alias_id));
    Ok(all)
}

struct Link {
    alias_id: String,
    root_id: String,
    is_part: bool,
}

async fn select(
    connection: &mut AnyConnection,
    scope: &Scope,
    statement: &'static str,
    ids: &[&String],
) -> Result<Vec<Link>> {
    let mut query = sqlx::query(repeat_values(Database::of(connection), statement, ids.len()))
        .bind(scope.provider.to_string())
        .bind(scope.account.to_string())
        .bind(scope.mode.to_string());
    for id in ids {
        query = query.bind(id.as_str());
    }
    let rows = query.fetch_all(connection).await.context("read aliases")?;
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
