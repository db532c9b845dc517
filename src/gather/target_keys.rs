//! The key table in a team's database: an effect is carried out there once, because its key can be taken once, in the
//! transaction that writes the effect.
//!
//! The one thing to get right: a key that was taken before is told from every other refusal. Nothing is ignored.

use super::reader::{Bind, Reader};
use super::source::Source;
use super::trouble::is_in_the_way;
use crate::config::Unusable;
use anyhow::Result;
use sqlx::mysql::MySqlDatabaseError;

/// What makes the table, by the name of the database: `sqlite`, `postgres`, `mysql`.
pub const KEY_TABLES: [(&str, &str); 3] = [
    ("sqlite", include_str!("../../queries/target/key_table_sqlite.sql")),
    ("postgres", include_str!("../../queries/target/key_table_postgres.sql")),
    ("mysql", include_str!("../../queries/target/key_table_mysql.sql")),
];
const INSERT: &str = include_str!("../../queries/target/key_insert.sql");
const INSERT_MYSQL: &str = include_str!("../../queries/target/key_insert_mysql.sql");
const READ: &str = include_str!("../../queries/target/key_read.sql");
const READ_MYSQL: &str = include_str!("../../queries/target/key_read_mysql.sql");
const HOLDS_MYSQL: &str = include_str!("../../queries/target/key_table_holds_mysql.sql");
const LABEL: &str = "recon_applied";
const GRANTS: &str = "as the database's owner: grant select, insert on recon_applied to the role of [target] url (docs/targets.md)";
/// MySQL's number for a row whose key is there (`ER_DUP_ENTRY`).
const TAKEN_MYSQL: u16 = 1062;

/// A key to take, and who takes it.
#[derive(Clone, Debug)]
pub struct Key<'a> {
    /// Scope and effect.
    pub effect_key: String,
    /// The correction.
    pub correction_id: &'a str,
    /// The run that planned it.
    pub run_id: &'a str,
    /// Now, Unix µs.
    pub applied_at_us: i64,
}

/// What became of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyAnswer {
    /// It is taken now, if the transaction commits.
    Taken,
    /// It was taken before, by this correction.
    Held(String),
    /// Others were in the way.
    Again,
}

/// What makes the table in this database, as one line.
fn table_of(name: &str) -> String {
    let text = KEY_TABLES.iter().find(|(database, _)| *database == name).map_or("", |(_, text)| text);
    let words = text.lines().filter(|line| !line.starts_with("--")).flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

/// Checks that the table is there and keeps its promise.
///
/// # Errors
/// [`Unusable`] with the statement that makes it.
pub(super) async fn check(source: &Source) -> Result<()> {
    let hint = || format!("as the database's owner: {}", table_of(source.name()));
    let is_mysql = source.name() == "mysql";
    let (insert, binds) = statement(is_mysql);
    if let Err(error) = source.check_write(LABEL, insert, &binds).await {
        let Ok(unusable) = error.downcast::<Unusable>() else {
            // A second time it is told as it is.
            return source.check_write(LABEL, insert, &binds).await;
        };
        let why = unusable.message.rsplit("refuses it: ").next().unwrap_or_default().to_owned();
        let hint = || if unusable.hint.contains("grant") { GRANTS.to_owned() } else { hint() };
        let place = &source.told().place;
        return Err(Unusable::new(
            format!("[target] url: {place}: the table recon_applied cannot be used: {why}"),
            hint(),
        )
        .into());
    }
    if is_mysql {
        let mut reader = source.reader().await?;
        let mut rows = reader.rows(LABEL, HOLDS_MYSQL.to_owned(), Vec::new()).await?;
        let holds = rows.next().await?.is_some();
        drop(rows);
        reader.end().await?;
        if !holds {
            let place = &source.told().place;
            return Err(Unusable::new(
                format!("[target] url: {place}: recon_applied would not keep effects apart: effect_key is not unique by its bytes, or the engine has no transactions"),
                hint(),
            )
            .into());
        }
    }
    Ok(())
}

const fn statement(is_mysql: bool) -> (&'static str, [&'static str; 4]) {
    let sql = if is_mysql { INSERT_MYSQL } else { INSERT };
    (sql, ["effect_key", "correction_id", "run_id", "applied_at_us"])
}

/// Takes a key in the transaction that is open.
///
/// # Errors
/// When the database cannot be written.
pub(super) async fn take(source: &Source, writer: &mut Reader, key: &Key<'_>) -> Result<KeyAnswer> {
    let is_mysql = source.name() == "mysql";
    let text = |text: &str| Bind::Text(text.to_owned());
    let binds = vec![
        text(&key.effect_key),
        text(key.correction_id),
        text(key.run_id),
        Bind::Integer(key.applied_at_us),
    ];
    match writer.execute(statement(is_mysql).0, binds).await {
        Ok(0) => {}
        Ok(_) => return Ok(KeyAnswer::Taken),
        Err(error) if is_in_the_way(&error) => return Ok(KeyAnswer::Again),
        Err(error) if is_mysql && is_duplicate(&error) => {}
        Err(error) => return Err(source.told().stopped(LABEL, &error)),
    }
    let sql = if is_mysql { READ_MYSQL } else { READ };
    let mut rows = writer.rows(LABEL, sql.to_owned(), vec![text(&key.effect_key)]).await?;
    let Some(row) = rows.next().await? else { return Ok(KeyAnswer::Again) };
    let held = row.bytes(0).map_err(|error| source.told().stopped(LABEL, &error))?;
    Ok(KeyAnswer::Held(String::from_utf8_lossy(&held.unwrap_or_default()).into_owned()))
}

fn is_duplicate(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else { return false };
    refusal.try_downcast_ref::<MySqlDatabaseError>().is_some_and(|refusal| refusal.number() == TAKEN_MYSQL)
}
