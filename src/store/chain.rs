//! The history of corrections: insert only, each row hashed together with the one before it, so that
//! a row that was changed or taken out later shows.

use super::Database;
use super::batch::{CHUNK_ROWS, repeat_values};
use anyhow::{Context, Result};
use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};
use sqlx::{AnyConnection, AnyPool, Row};
use std::collections::{BTreeMap, BTreeSet};

/// What became of one correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// The correction.
    pub correction_id: &'a str,
    /// The run that planned it.
    pub plan_run_id: &'a str,
    /// The finding that it answers.
    pub finding_id: &'a str,
    /// The action.
    pub action: &'a str,
    /// The effect key.
    pub effect_key: &'a str,
    /// The outcome's word.
    pub outcome: &'a str,
}

/// Outcomes recorded so far, by correction.
///
/// # Errors
/// When the store cannot be read.
pub async fn outcomes(
    connection: &mut AnyConnection,
    ids: &[&str],
) -> Result<BTreeMap<String, BTreeSet<String>>> {
    const SQL: &str = include_str!("../../queries/store/correction_outcomes.sql");
    let mut outcomes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for chunk in ids.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), SQL, chunk.len()));
        for id in chunk {
            query = query.bind(*id);
        }
        let rows = query.fetch_all(&mut *connection).await.context("read the outcomes of corrections")?;
        for row in rows {
            outcomes.entry(row.try_get("correction_id")?).or_default().insert(row.try_get("outcome")?);
        }
    }
    Ok(outcomes)
}

/// Appends outcomes to the chain, and who (`actor`) carried them out. The connection must hold the write lock.
///
/// # Errors
/// When the store refuses the write: an outcome that is there already is a mistake of the caller.
pub async fn append(
    connection: &mut AnyConnection,
    rows: &[Outcome<'_>],
    applied_at_us: i64,
    actor: &str,
) -> Result<()> {
    const LAST: &str = include_str!("../../queries/store/correction_last.sql");
    const INSERT: &str = include_str!("../../queries/store/correction_insert.sql");
    const ACTOR: &str = include_str!("../../queries/store/correction_actor_insert.sql");
    if rows.is_empty() {
        return Ok(());
    }
    let last =
        sqlx::query(LAST).fetch_optional(&mut *connection).await.context("read the end of the chain")?;
    let (mut sequence, mut previous) = match last {
        Some(row) => (row.try_get::<i64, _>("sequence")?, row.try_get::<String, _>("hash")?),
        None => (0, String::new()),
    };
    let first = sequence + 1;
    for chunk in rows.chunks(CHUNK_ROWS) {
        let mut query = sqlx::query(repeat_values(Database::of(connection), INSERT, chunk.len()));
        for row in chunk {
            sequence += 1;
            let hash = link(&previous, sequence, row, applied_at_us);
            query = query.bind(sequence).bind(row.correction_id).bind(row.plan_run_id).bind(row.finding_id);
            query = query.bind(row.action).bind(row.effect_key).bind(row.outcome).bind(applied_at_us);
            query = query.bind(previous).bind(hash.clone());
            previous = hash;
        }
        query.fetch_all(&mut *connection).await.context("append to the history of corrections")?;
    }
    let query = sqlx::query(ACTOR).bind(first).bind(sequence).bind(actor.to_owned());
    query.fetch_optional(&mut *connection).await.context("keep who carried corrections out")?;
    Ok(())
}

/// Reads the whole chain again. Answers the sequence of the first row that does not follow from the
/// one before it, or `None` when all do.
///
/// # Errors
/// When the store cannot be read.
pub async fn first_broken(pool: &AnyPool) -> Result<Option<i64>> {
    const SQL: &str = include_str!("../../queries/store/correction_all.sql");
    let mut rows = sqlx::query(SQL).fetch(pool);
    let (mut expected, mut previous) = (1, String::new());
    while let Some(row) = rows.try_next().await.context("read the history of corrections")? {
        let sequence: i64 = row.try_get("sequence")?;
        let outcome = Outcome {
            correction_id: row.try_get("correction_id")?,
            plan_run_id: row.try_get("plan_run_id")?,
            finding_id: row.try_get("finding_id")?,
            action: row.try_get("action")?,
            effect_key: row.try_get("effect_key")?,
            outcome: row.try_get("outcome")?,
        };
        let hash = link(&previous, sequence, &outcome, row.try_get("applied_at_us")?);
        let follows = sequence == expected
            && row.try_get::<String, _>("previous_hash")? == previous
            && row.try_get::<String, _>("hash")? == hash;
        if !follows {
            return Ok(Some(sequence));
        }
        expected += 1;
        previous = hash;
    }
    Ok(None)
}

fn link(previous: &str, sequence: i64, row: &Outcome<'_>, applied_at_us: i64) -> String {
    let (sequence, applied) = (sequence.to_string(), applied_at_us.to_string());
    let parts = [
        previous,
        &sequence,
        row.correction_id,
        row.plan_run_id,
        row.finding_id,
        row.action,
        row.effect_key,
        row.outcome,
        &applied,
    ];
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        text
    })
}
