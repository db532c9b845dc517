//! Invoices that several payments paid.

use super::Store;
use super::batch::{chunks, is_storable, repeat_values};
use crate::record::{InvoiceParts, Scope};
use anyhow::{Context, Result};
use sqlx::Row;
use sqlx::any::AnyRow;
use std::collections::{BTreeMap, BTreeSet};

/// Keeps which payments paid parts of these invoices; the newest word wins.
///
/// # Errors
/// When the store cannot be written.
pub async fn save_invoices(store: &Store, invoices: &[InvoiceParts]) -> Result<()> {
    // One statement must not name a key twice.
    let rows: BTreeMap<(&Scope, &str, &str), i64> = invoices
        .iter()
        .flat_map(|invoice| {
            invoice
                .payment_ids
                .iter()
                .map(|payment| ((&invoice.scope, &*invoice.invoice_id, &**payment), invoice.due_minor))
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = rows.into_iter().collect();
    let mut tx = store.begin_write().await?;
    for chunk in chunks(&rows) {
        let sql = repeat_values(
            store.database(),
            include_str!("../../queries/store/invoice_part_upsert.sql"),
            chunk.len(),
        );
        let mut query = sqlx::query(sql);
        for ((scope, invoice_id, payment_id), due_minor) in chunk {
            query = query
                .bind(scope.provider.to_string())
                .bind(scope.account.to_string())
                .bind(scope.mode.to_string())
                .bind((*invoice_id).to_owned())
                .bind((*payment_id).to_owned())
                .bind(*due_minor);
        }
        query.fetch_all(&mut *tx).await.context("keep the payments of invoices")?;
    }
    tx.commit().await.context("keep the payments of invoices")
}

/// The invoices that several payments paid and that `ids` name, themselves or by one of those payments; by
/// invoice id.
///
/// # Errors
/// When the store cannot be read.
pub async fn invoices_of(store: &Store, scope: &Scope, ids: &BTreeSet<String>) -> Result<Vec<InvoiceParts>> {
    let of_payments = include_str!("../../queries/store/invoice_of_payments.sql");
    let mut invoices = ids.clone();
    for row in select(store, scope, of_payments, ids).await? {
        invoices.insert(row.try_get("invoice_id")?);
    }
    let mut found: BTreeMap<String, InvoiceParts> = BTreeMap::new();
    let parts = include_str!("../../queries/store/invoice_parts.sql");
    for row in select(store, scope, parts, &invoices).await? {
        let invoice_id: String = row.try_get("invoice_id")?;
        let invoice = found.entry(invoice_id.clone()).or_insert_with(|| InvoiceParts {
            scope: scope.clone(),
            invoice_id,
            payment_ids: BTreeSet::new(),
            due_minor: 0,
        });
        invoice.payment_ids.insert(row.try_get("payment_id")?);
        invoice.due_minor = row.try_get("due_minor")?;
    }
    Ok(found.into_values().collect())
}

async fn select(
    store: &Store,
    scope: &Scope,
    statement: &'static str,
    ids: &BTreeSet<String>,
) -> Result<Vec<AnyRow>> {
    let ids: Vec<&String> = ids.iter().filter(|id| is_storable(id)).collect();
    let mut rows = Vec::new();
    if ids.is_empty() {
        return Ok(rows);
    }
    let mut tx = store.begin_read().await?;
    for chunk in chunks(&ids) {
        let mut query = sqlx::query(repeat_values(store.database(), statement, chunk.len()))
            .bind(scope.provider.to_string())
            .bind(scope.account.to_string())
            .bind(scope.mode.to_string());
        for id in chunk {
            query = query.bind(id.as_str());
        }
        rows.extend(query.fetch_all(&mut *tx).await.context("read the payments of invoices")?);
    }
    tx.commit().await.context("read the payments of invoices")?;
    Ok(rows)
}
