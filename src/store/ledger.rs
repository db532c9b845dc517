//! The ledger's statements: reads and the one insert. Who may call the insert is decided in
//! `apply.rs`; nothing updates or deletes an entry.

use super::Database;
use super::batch::{chunks, is_storable, repeat_values};
use crate::record::{EffectKey, EffectKind, EventKey, Scope};
use anyhow::{Context, Result, anyhow};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use std::collections::{BTreeMap, BTreeSet};

/// One immutable ledger line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub entry_id: String,
    /// Its unique key.
    pub key: EffectKey,
    /// The object, as whoever booked it named it.
    pub object_id: String,
    /// Kind; gives the direction.
    pub kind: EffectKind,
    /// Magnitude in minor units; negative for the undoing of an earlier entry.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: String,
    /// The provider's time, Unix µs.
    pub occurred_at_us: i64,
    /// When it was booked, Unix µs.
    pub applied_at_us: i64,
    /// The event that brought it, empty where none did.
    pub event_id: String,
    /// The entry that it undoes, empty where it undoes none.
    pub corrects_entry_id: String,
    /// The run that booked it, empty for live events.
    pub run_id: String,
    /// Why.
    pub reason: String,
}

/// Entries on the named objects, of every scope, in booking order.
///
/// # Errors
/// When the store cannot be read or holds a kind that the schema does not allow.
pub async fn entries_by_object(
    connection: &mut AnyConnection,
    objects: &BTreeSet<&str>,
) -> Result<Vec<Entry>> {
    const SQL: &str = include_str!("../../queries/store/ledger_entries_by_object.sql");
    entries_by_text(connection, SQL, objects).await
}

/// Entries by id, of every scope.
///
/// # Errors
/// As [`entries_by_object`].
pub async fn entries_by_id(connection: &mut AnyConnection, ids: &BTreeSet<&str>) -> Result<Vec<Entry>> {
    const SQL: &str = include_str!("../../queries/store/ledger_entries_by_id.sql");
    entries_by_text(connection, SQL, ids).await
}

/// Entries that undo any of the named entries.
///
/// # Errors
/// As [`entries_by_object`].
pub async fn entries_correcting(connection: &mut AnyConnection, ids: &BTreeSet<&str>) -> Result<Vec<Entry>> {
    const SQL: &str = include_str!("../../queries/store/ledger_entries_correcting.sql");
    entries_by_text(connection, SQL, ids).await
}

/// Ledger amounts (minor units, magnitudes) by entry id, for planning reversals.
///
/// # Errors
/// As [`entries_by_object`].
pub async fn entry_amounts(
    connection: &mut AnyConnection,
    ids: &BTreeSet<&str>,
) -> Result<BTreeMap<String, i64>> {
    let entries = entries_by_id(connection, ids).await?;
    Ok(entries.into_iter().map(|entry| (entry.entry_id, entry.amount_minor)).collect())
}

/// Entries under the named effect keys.
///
/// # Errors
/// As [`entries_by_object`].
pub async fn entries_by_key(connection: &mut AnyConnection, keys: &[&EffectKey]) -> Result<Vec<Entry>> {
    const SQL: &str = include_str!("../../queries/store/ledger_entries_by_key.sql");
    let mut entries = Vec::new();
    let mut scopes = Scopes::default();
    for chunk in chunks(keys) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for key in chunk {
            let scope = &key.scope;
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode).bind(&*key.key);
        }
        let rows = query.fetch_all(&mut *connection).await.context("read ledger entries by effect key")?;
        for row in &rows {
            entries.push(entry(&mut scopes, row)?);
        }
    }
    Ok(entries)
}

/// Inserts entries and answers the ids of those that were not there.
///
/// # Errors
/// When the store refuses the write for any reason but an existing key.
pub async fn insert_entries(connection: &mut AnyConnection, entries: &[Entry]) -> Result<BTreeSet<String>> {
    const SQL: &str = include_str!("../../queries/store/ledger_entry_insert.sql");
    let mut inserted = BTreeSet::new();
    for chunk in chunks(entries) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for entry in chunk {
            let scope = &entry.key.scope;
            query = query.bind(&*entry.entry_id).bind(&*scope.provider).bind(&*scope.account);
            query = query.bind(&*scope.mode).bind(&*entry.key.key).bind(&*entry.object_id);
            query = query.bind(entry.kind.as_str()).bind(entry.amount_minor).bind(&*entry.currency);
            query = query.bind(entry.occurred_at_us).bind(entry.applied_at_us).bind(&*entry.event_id);
            query = query.bind(&*entry.corrects_entry_id).bind(&*entry.run_id).bind(&*entry.reason);
        }
        let rows = query.fetch_all(&mut *connection).await.context("insert ledger entries")?;
        for row in &rows {
            inserted.insert(row.try_get("entry_id")?);
        }
    }
    Ok(inserted)
}

/// Records events as processed; those that were recorded before stay as they are.
///
/// # Errors
/// When the store refuses the write for any reason but an existing key.
pub async fn insert_applied_events(
    connection: &mut AnyConnection,
    events: &[(&EventKey, &str)],
    applied_at_us: i64,
) -> Result<()> {
    const SQL: &str = include_str!("../../queries/store/applied_event_insert.sql");
    for chunk in chunks(events) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for (event, run_id) in chunk {
            let scope = &event.scope;
            query = query.bind(&*scope.provider).bind(&*scope.account).bind(&*scope.mode);
            query = query.bind(&*event.event_id).bind(applied_at_us).bind(*run_id);
        }
        query.fetch_all(&mut *connection).await.context("record events as processed")?;
    }
    Ok(())
}

async fn entries_by_text(
    connection: &mut AnyConnection,
    sql: &'static str,
    texts: &BTreeSet<&str>,
) -> Result<Vec<Entry>> {
    let texts: Vec<&str> = texts.iter().copied().filter(|text| is_storable(text)).collect();
    let mut entries = Vec::new();
    let mut scopes = Scopes::default();
    for chunk in chunks(&texts) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), sql, chunk.len()));
        for text in chunk {
            query = query.bind(*text);
        }
        let rows = query.fetch_all(&mut *connection).await.context("read ledger entries")?;
        for row in &rows {
            entries.push(entry(&mut scopes, row)?);
        }
    }
    Ok(entries)
}

fn entry(scopes: &mut Scopes, row: &AnyRow) -> Result<Entry> {
    let entry_id: String = row.try_get("entry_id")?;
    let kind: &str = row.try_get("kind")?;
    let kind = kind.parse().map_err(|()| anyhow!("ledger entry {entry_id} has the unknown kind `{kind}`"))?;
    Ok(Entry {
        key: EffectKey { scope: scopes.of(row)?, key: row.try_get("effect_key")? },
        entry_id,
        object_id: row.try_get("object_id")?,
        kind,
        amount_minor: row.try_get("amount_minor")?,
        currency: row.try_get("currency")?,
        occurred_at_us: row.try_get("occurred_at_us")?,
        applied_at_us: row.try_get("applied_at_us")?,
        event_id: row.try_get("event_id")?,
        corrects_entry_id: row.try_get("corrects_entry_id")?,
        run_id: row.try_get("run_id")?,
        reason: row.try_get("reason")?,
    })
}

/// The scope columns of rows that are read one after the other; equal neighbours share their texts.
#[derive(Debug, Default)]
pub(super) struct Scopes(Option<Scope>);

impl Scopes {
    pub(super) fn of(&mut self, row: &AnyRow) -> Result<Scope> {
        let (provider, account, mode): (&str, &str, &str) =
            (row.try_get("provider")?, row.try_get("account")?, row.try_get("mode")?);
        let is_same =
            |last: &&Scope| (&*last.provider, &*last.account, &*last.mode) == (provider, account, mode);
        if let Some(last) = self.0.as_ref().filter(is_same) {
            return Ok(last.clone());
        }
        Ok(self.0.insert(Scope::new(provider, account, mode)).clone())
    }
}
