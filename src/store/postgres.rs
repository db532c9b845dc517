//! What a store on PostgreSQL needs beside the shared statements: the check of the database, the
//! migrations in its words, and transactions that lock and commit as SQLite's do.
//!
//! The one thing to get right: transactions say their isolation themselves. Under the write lock a
//! statement must see what the holder before committed, so each has to look anew (`read committed`),
//! whatever the server's default is.

use super::{LOCK_WAIT_MS, shown_url};
use anyhow::{Context, Result, ensure};
use sqlx::migrate::Migration;
use sqlx::{Any, AnyConnection, AnyPool, Connection, Row, SqlSafeStr, Transaction};

/// Limits how long a statement waits for a lock, and does not let a commit answer before it is on disk. Rows are found
/// by key: a plan made while a table was small, or before it was analysed, reads all of it for each statement, and
/// the connection keeps that plan while the table grows. No plan depends on the values, so one is made for all. All for
/// this transaction alone, so that nothing is left to the next user of a pooled connection.
const BEGIN: &str = "begin isolation level read committed; \
     select set_config('lock_timeout', '10s', true), set_config('plan_cache_mode', 'force_generic_plan', true), \
         set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), \
         set_config('enable_mergejoin', 'off', true), set_config('enable_material', 'off', true); \
     select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'";
const _: () = assert!(LOCK_WAIT_MS == 10_000, "the lock timeout in BEGIN");

/// The same plans for what only reads.
const BEGIN_READ: &str = "begin isolation level read committed read only; \
     select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true), \
         set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), \
         set_config('enable_material', 'off', true)";

/// What is done about each table that `grown_tables.sql` names. Columns of bodies are left out: they are never looked
/// for. Whoever else is at it does as well.
const ANALYZE: [(&str, &str); 7] = [
    (
        "provider_record",
        "analyze (skip_locked) provider_record (provider, account, mode, stream, record_id, created_us)",
    ),
    ("alias", "analyze (skip_locked) alias"),
    ("intent_charge", "analyze (skip_locked) intent_charge"),
    ("invoice_part", "analyze (skip_locked) invoice_part"),
    (
        "inbox_event",
        "analyze (skip_locked) inbox_event (provider, account, mode, event_id, event_type, received_at_us, status)",
    ),
    ("ledger_entry", "analyze (skip_locked) ledger_entry"),
    ("object_state", "analyze (skip_locked) object_state"),
];

/// Starts a transaction that finds rows by key and writes none.
pub(super) async fn begin_read(pool: &AnyPool) -> sqlx::Result<Transaction<'static, Any>> {
    pool.begin_with(BEGIN_READ).await
}

/// Has the tables analysed that are new, or have grown much since that was done last.
pub(super) async fn analyze_grown(pool: &AnyPool) -> sqlx::Result<()> {
    const GROWN: &str = include_str!("../../queries/postgres/grown_tables.sql");
    for row in sqlx::query(GROWN).persistent(false).fetch_all(pool).await? {
        let table: String = row.try_get("table_name")?;
        for (_, statement) in ANALYZE.iter().filter(|(name, _)| *name == table) {
            sqlx::query(*statement).persistent(false).execute(pool).await?;
        }
    }
    Ok(())
}

/// Starts a write transaction that waits for rows only.
pub(super) async fn begin(pool: &AnyPool) -> sqlx::Result<Transaction<'static, Any>> {
    pool.begin_with(BEGIN).await
}

/// Starts a write transaction that holds recon's write lock.
pub(super) async fn begin_write(pool: &AnyPool) -> sqlx::Result<Transaction<'static, Any>> {
    const LOCK: &str = include_str!("../../queries/postgres/write_lock.sql");
    // Not in one breath with `begin`: the driver would take the connection of a lock that was not had
    // for one without a transaction.
    let mut tx = begin(pool).await?;
    sqlx::query(LOCK).persistent(false).fetch_one(&mut *tx).await?;
    Ok(tx)
}

/// Whether the tables of a store are there.
///
/// # Errors
/// When the database cannot hold every text, or cannot be read.
pub(super) async fn has_tables(connection: &mut AnyConnection, url: &str) -> Result<bool> {
    const SQL: &str = include_str!("../../queries/postgres/store_tables.sql");
    // One transaction and no prepared statement: a pooler may stand between.
    let mut tx = connection.begin().await.context("look at the database")?;
    let row = sqlx::query(SQL).persistent(false).fetch_one(&mut *tx).await.context("look at the database")?;
    tx.commit().await.context("look at the database")?;
    let encoding: &str = row.try_get("encoding")?;
    ensure!(encoding == "UTF8", "the encoding of {} is {encoding}, and must be UTF8", shown_url(url));
    Ok(row.try_get::<i32, _>("has_tables")? == 1)
}

/// A migration in PostgreSQL's words: `bytea` for `blob`, and texts that are compared and sorted byte by
/// byte, as SQLite does, whatever the collation of the database is. Its checksum stays that of the file.
#[must_use]
pub(super) fn translated(mut migration: Migration) -> Migration {
    let words: String = migration.sql.as_str().lines().map(|line| translated_line(line) + "\n").collect();
    migration.sql = sqlx::AssertSqlSafe(words).into_sql_str();
    migration
}

/// Texts in quotes and comments are left alone; no migration has a text over several lines.
fn translated_line(line: &str) -> String {
    let (code, comment) = line.find("--").map_or((line, ""), |at| line.split_at(at));
    let mut translated = String::with_capacity(line.len() + 16);
    for (index, part) in code.split('\'').enumerate() {
        if index > 0 {
            translated.push('\'');
        }
        if index % 2 == 1 {
            translated.push_str(part);
            continue;
        }
        for word in part.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
            let end = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            translated.push_str(match end {
                "text" => "text collate \"C\"",
                "blob" => "bytea",
                other => other,
            });
            translated.push_str(&word[end.len()..]);
        }
    }
    translated + comment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_translated_and_nothing_else() {
        for (line, expected) in [
            ("    body blob not null,", "    body bytea not null,"),
            ("    name text, -- a text", "    name text collate \"C\", -- a text"),
            (
                "    kind text check (kind in ('text', 'blob'))",
                "    kind text collate \"C\" check (kind in ('text', 'blob'))",
            ),
            ("alter table a add column text_of blob", "alter table a add column text_of bytea"),
            ("    count bigint default 0", "    count bigint default 0"),
        ] {
            assert_eq!(translated_line(line), expected);
        }
    }
}
