//! Brings a store's tables up to date, whoever else does so at the same moment.
//!
//! The one thing to get right: several processes may meet at a new store, such as `recon serve` and `recon work` at
//! their first start. One of them makes the tables; the others wait for it, look again, and find nothing to do.

use super::{Database, LOCK_ATTEMPTS, is_busy_code, postgres};
use anyhow::{Context, Result};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AnyConnection, AnyPool, Connection, Row, SqlSafeStr};

/// The migrations, forward only; a file is never edited after it has landed.
fn all(database: Database) -> Vec<Migration> {
    const FILES: [(i64, &str, &str); 10] = [
        (1, "store", include_str!("../../migrations/0001_store.sql")),
        (2, "run error", include_str!("../../migrations/0002_run_error.sql")),
        (3, "intent charge", include_str!("../../migrations/0003_intent_charge.sql")),
        (4, "payment asked", include_str!("../../migrations/0004_payment_asked.sql")),
        (5, "invoice part", include_str!("../../migrations/0005_invoice_part.sql")),
        (6, "receive", include_str!("../../migrations/0006_receive.sql")),
        (7, "operating", include_str!("../../migrations/0007_operating.sql")),
        (8, "finding life", include_str!("../../migrations/0008_finding_life.sql")),
        (9, "dead letter told", include_str!("../../migrations/0009_dead_letter_told.sql")),
        (10, "request slot", include_str!("../../migrations/0010_request_slot.sql")),
    ];
    let migration = |(version, name, sql): (i64, &'static str, &'static str)| {
        let migration =
            Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false);
        match database {
            Database::Sqlite => migration,
            Database::Postgres => postgres::translated(migration),
        }
    };
    FILES.into_iter().map(migration).collect()
}

/// Whether exactly these migrations were carried out. Asked before migrating, because `create table if not
/// exists` wants the right to create tables even where there is nothing to create.
///
/// # Errors
/// When the table of migrations cannot be read, or is not there.
pub(super) async fn is_up_to_date(connection: &mut AnyConnection, database: Database) -> Result<bool> {
    const SQL: &str = include_str!("../../queries/store/migrations_applied.sql");
    let mut tx = connection.begin().await.context("read the migrations")?;
    let rows = sqlx::query(SQL).persistent(false).fetch_all(&mut *tx).await.context("read the migrations")?;
    tx.commit().await.context("read the migrations")?;
    let mut applied = Vec::with_capacity(rows.len());
    for row in &rows {
        applied.push((row.try_get::<i64, _>("version")?, row.try_get::<Vec<u8>, _>("checksum")?));
    }
    let wanted = all(database).into_iter().map(|migration| (migration.version, migration.checksum.to_vec()));
    Ok(applied.into_iter().eq(wanted))
}

/// All of them in one transaction that holds SQLite's one write lock: the driver takes none for migrating there.
///
/// # Errors
/// When the lock cannot be had in time, or a migration fails; then the store is as it was.
pub(super) async fn bring_sqlite_up_to_date(pool: &AnyPool) -> Result<()> {
    let mut connection = pool.acquire().await.context("reach the store")?;
    // On a new store there is nothing to read; any other trouble is met again under the lock.
    if is_up_to_date(&mut connection, Database::Sqlite).await.unwrap_or(false) {
        return Ok(());
    }
    drop(connection);
    let mut attempt = 1;
    let mut tx = loop {
        match pool.begin_with("BEGIN IMMEDIATE").await {
            Err(error) if attempt < LOCK_ATTEMPTS && is_busy_code(&error) => attempt += 1,
            begun => break begun.context("take the store's write lock")?,
        }
    };
    // `run` is the same, for whoever hands over a whole pool; within it each migration is a savepoint.
    Migrator::with_migrations(all(Database::Sqlite)).run_direct(None, &mut *tx, false).await?;
    tx.commit().await.context("commit the migrations")
}

/// The driver holds a lock of its own while it migrates there.
///
/// # Errors
/// When a migration fails; those before it were carried out.
pub(super) async fn bring_postgres_up_to_date(pool: &AnyPool) -> Result<()> {
    Ok(Migrator::with_migrations(all(Database::Postgres)).run(pool).await?)
}
