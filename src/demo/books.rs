//! Writes the shop's rows into a store, many to a statement.

use super::faults::Planted;
use super::handlers::{self, Books, InboxRow, LedgerRow, StateRow};
use super::world::World;
use crate::record::sha256_hex;
use crate::store::Store;
use anyhow::{Context, Result, bail};
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe};

/// The name under which the demonstration's provider is configured.
pub const PROVIDER: &str = "stripe";

const INSERT_INBOX: &str = include_str!("../../queries/demo/insert_inbox_event.sql");
const INSERT_LEDGER: &str = include_str!("../../queries/demo/insert_ledger_entry.sql");
const INSERT_STATE: &str = include_str!("../../queries/demo/insert_object_state.sql");

/// Rows in one statement.
const STATEMENT_ROWS: usize = 100;
/// Rows in one transaction.
const TRANSACTION_ROWS: usize = 5_000;

type Bound<'a> = Query<'a, Any, AnyArguments>;

/// Delivers a world's events to the shop and writes what it holds afterwards into the store's
/// `inbox_event`, `ledger_entry` and `object_state`.
///
/// # Errors
/// When the store cannot be written.
pub async fn deliver(store: &Store, world: &World, planted: &[Planted], seed: u64) -> Result<Books> {
    let books = handlers::books(world, planted, seed);
    let account = &*world.account;
    insert(store, INSERT_INBOX, &books.inbox, |query, row: &InboxRow| {
        let sha256 = sha256_hex(row.body.as_bytes());
        query
            .bind(PROVIDER)
            .bind(account)
            .bind(row.mode)
            .bind(&row.event_id)
            .bind(&row.kind)
            .bind(row.body.as_bytes())
            .bind(sha256)
            .bind(row.received_us)
            .bind(row.last_us)
            .bind(row.deliveries)
            .bind(row.status.as_str())
    })
    .await
    .context("write the shop's inbox")?;
    insert(store, INSERT_LEDGER, &books.ledger, |query, row: &LedgerRow| {
        query
            .bind(&row.entry_id)
            .bind(PROVIDER)
            .bind(account)
            .bind("live")
            .bind(&row.effect_key)
            .bind(&row.object_id)
            .bind(row.kind.as_str())
            .bind(row.amount_minor)
            .bind(row.currency)
            .bind(row.occurred_us)
            .bind(row.applied_us)
            .bind(&row.event_id)
            .bind(&row.corrects)
    })
    .await
    .context("write the shop's ledger")?;
    insert(store, INSERT_STATE, &books.states, |query, row: &StateRow| {
        query
            .bind(PROVIDER)
            .bind(account)
            .bind("live")
            .bind(&row.object_id)
            .bind(row.status.as_str())
            .bind(row.provider_us)
            .bind(row.updated_us)
    })
    .await
    .context("write the shop's statuses")?;
    Ok(books)
}

async fn insert<'a, T>(
    store: &Store,
    template: &str,
    rows: &'a [T],
    bind: impl Fn(Bound<'a>, &'a T) -> Bound<'a>,
) -> Result<()> {
    for batch in rows.chunks(TRANSACTION_ROWS) {
        let mut transaction = store.begin_write().await?;
        for chunk in batch.chunks(STATEMENT_ROWS) {
            insert_chunk(&mut transaction, template, chunk, &bind).await?;
        }
        transaction.commit().await.context("commit")?;
    }
    Ok(())
}

async fn insert_chunk<'a, T>(
    connection: &mut AnyConnection,
    template: &str,
    rows: &'a [T],
    bind: &impl Fn(Bound<'a>, &'a T) -> Bound<'a>,
) -> Result<()> {
    let text = repeat(template, rows.len())?;
    let query = rows.iter().fold(sqlx::query(AssertSqlSafe(text)), bind);
    let written = query.fetch_all(connection).await?.len();
    if written != rows.len() {
        bail!("{written} rows written of {}", rows.len());
    }
    Ok(())
}

/// A one-row insert with its row of values repeated.
fn repeat(template: &str, rows: usize) -> Result<String> {
    let start = template.find("\nvalues (").map(|at| at + "\nvalues ".len()).context("no values")?;
    let end = template[start..].find(')').map(|at| start + at + 1).context("no end of values")?;
    let width = template[start..end].matches('$').count();
    let mut text = template[..start].to_owned();
    for row in 0..rows {
        let places: Vec<String> = (1..=width).map(|place| format!("${}", row * width + place)).collect();
        text.push_str(if row == 0 { "(" } else { ", (" });
        text.push_str(&places.join(", "));
        text.push(')');
    }
    text.push_str(&template[end..]);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_values_is_repeated_with_running_numbers() {
        let text = repeat("insert into t (a, b)\nvalues ($1, $2)\nreturning 1\n", 2).unwrap();
        assert_eq!(text, "insert into t (a, b)\nvalues ($1, $2), ($3, $4)\nreturning 1\n");
    }
}
