//! Which payments were asked for whole.
//!
//! The one thing to get right: a payment that could not be asked for this time is no longer known whole,
//! whatever an earlier run kept.

use super::Store;
use super::batch::{CHUNK_ROWS, repeat_values};
use crate::record::Scope;
use anyhow::{Context, Result};
use sqlx::Row;
use std::collections::{BTreeMap, BTreeSet};

/// Keeps of each root whether it was asked for whole at `now_us`.
///
/// # Errors
/// When the store cannot be written.
pub async fn save_asked(
    store: &Store,
    scope: &Scope,
    is_whole: &BTreeMap<String, bool>,
    now_us: i64,
) -> Result<()> {
    if is_whole.is_empty() {
        return Ok(());
    }
    let rows: Vec<(&String, &bool)> = is_whole.iter().collect();
    let mut tx = store.begin_write().await?;
    for chunk in rows.chunks(CHUNK_ROWS) {
        let sql = repeat_values(
            store.database(),
            include_str!("../../queries/store/payment_asked_upsert.sql"),
            chunk.len(),
        );
        let mut query = sqlx::query(sql);
        for (root_id, is_whole) in chunk {
            query = query
                .bind(scope.provider.to_string())
                .bind(scope.account.to_string())
                .bind(scope.mode.to_string())
                .bind((*root_id).clone())
                .bind(i64::from(**is_whole))
                .bind(now_us);
        }
        query.fetch_all(&mut *tx).await.context("keep which payments were asked for")?;
    }
    tx.commit().await.context("keep which payments were asked for")
}

/// Of these roots, those that were asked for whole when they were last doubted, and when (Unix µs).
///
/// # Errors
/// When the store cannot be read.
pub async fn asked_whole(
    store: &Store,
    scope: &Scope,
    roots: &BTreeSet<String>,
) -> Result<BTreeMap<String, i64>> {
    let mut found = BTreeMap::new();
    let roots: Vec<&String> = roots.iter().collect();
    for chunk in roots.chunks(CHUNK_ROWS) {
        let sql = repeat_values(
            store.database(),
            include_str!("../../queries/store/payment_asked_of_roots.sql"),
            chunk.len(),
        );
        let mut query = sqlx::query(sql)
            .bind(scope.provider.to_string())
            .bind(scope.account.to_string())
            .bind(scope.mode.to_string());
        for root_id in chunk {
            query = query.bind((*root_id).clone());
        }
        for row in query.fetch_all(store.pool()).await.context("read which payments were asked for")? {
            found.insert(row.try_get("root_id")?, row.try_get("asked_at_us")?);
        }
    }
    Ok(found)
}
