//! What each charge was meant to pay, so that one run finds the charges of an intent that other windows hold.
//!
//! The one thing to get right: this is an index of `provider_record` and no source. What a charge was meant
//! to pay is read again from its record before anything is said of it.

use super::Store;
use super::batch::{chunks, is_storable, repeat_values};
use crate::record::Scope;
use anyhow::{Context, Result};
use sqlx::Row;
use std::collections::{BTreeMap, BTreeSet};

/// Keeps the intents of charges (intent by charge id); the newest word wins.
///
/// # Errors
/// When the store cannot be written.
pub async fn save_intents(store: &Store, scope: &Scope, intents: &BTreeMap<String, String>) -> Result<()> {
    if intents.is_empty() {
        return Ok(());
    }
    let rows: Vec<(&String, &String)> = intents.iter().collect();
    let mut tx = store.begin_write().await?;
    for chunk in chunks(&rows) {
        let sql = repeat_values(
            store.database(),
            include_str!("../../queries/store/intent_charge_upsert.sql"),
            chunk.len(),
        );
        let mut query = sqlx::query(sql);
        for (charge_id, intent) in chunk {
            query = query
                .bind(scope.provider.to_string())
                .bind(scope.account.to_string())
                .bind(scope.mode.to_string())
                .bind(charge_id.as_str())
                .bind(intent.as_str());
        }
        query.fetch_all(&mut *tx).await.context("keep the intents of charges")?;
    }
    tx.commit().await.context("keep the intents of charges")
}

/// Every charge that was ever read and was made for one of these intents, with that intent.
///
/// # Errors
/// When the store cannot be read.
pub async fn charges_of_intents(
    store: &Store,
    scope: &Scope,
    intents: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let intents: Vec<&String> = intents.iter().filter(|intent| is_storable(intent)).collect();
    if intents.is_empty() {
        return Ok(found);
    }
    let mut tx = store.begin_read().await?;
    for chunk in chunks(&intents) {
        let sql = repeat_values(
            store.database(),
            include_str!("../../queries/store/intent_charge_of_intents.sql"),
            chunk.len(),
        );
        let mut query = sqlx::query(sql)
            .bind(scope.provider.to_string())
            .bind(scope.account.to_string())
            .bind(scope.mode.to_string());
        for intent in chunk {
            query = query.bind(intent.as_str());
        }
        for row in query.fetch_all(&mut *tx).await.context("read the charges of intents")? {
            found.insert(row.try_get("charge_id")?, row.try_get("intent")?);
        }
    }
    tx.commit().await.context("read the charges of intents")?;
    Ok(found)
}

/// The setting `intent` that a scope's charges were kept under; `None` where they never were.
///
/// # Errors
/// When the store cannot be read.
pub async fn intents_kept_under(store: &Store, scope: &Scope) -> Result<Option<String>> {
    let row = sqlx::query(include_str!("../../queries/store/intent_index_read.sql"))
        .bind(scope.provider.to_string())
        .bind(scope.account.to_string())
        .bind(scope.mode.to_string())
        .fetch_optional(store.pool())
        .await
        .context("read how intents are kept")?;
    Ok(row.map(|row| row.try_get("path")).transpose()?)
}

/// Says that every stored charge of a scope is kept under this setting.
///
/// # Errors
/// When the store cannot be written.
pub async fn set_intents_kept_under(store: &Store, scope: &Scope, path: &str) -> Result<()> {
    let mut tx = store.begin_write().await?;
    sqlx::query(include_str!("../../queries/store/intent_index_set.sql"))
        .bind(scope.provider.to_string())
        .bind(scope.account.to_string())
        .bind(scope.mode.to_string())
        .bind(path.to_owned())
        .fetch_all(&mut *tx)
        .await
        .context("note how intents are kept")?;
    tx.commit().await.context("note how intents are kept")
}
