//! What a side's database answers instead of rows, as one line: is it the settings and statements that cannot be
//! used, or is the database not to be had just now?
//!
//! The one thing to get right: running the same command again helps in the second case only, so the exit codes
//! differ (78 and 2).

use crate::config::Unusable;
use sqlx::error::DatabaseError;
use sqlx::mysql::MySqlDatabaseError;
use std::time::Duration;
use thiserror::Error;

/// A side could not be read to its end, through no fault of the settings.
#[derive(Debug, Error)]
#[error("{message}")]
pub(super) struct Trouble {
    message: String,
    hint: String,
}

const AGAIN: &str = "nothing was concluded; the same command begins again";

impl Trouble {
    pub fn new(message: String, hint: impl Into<String>) -> Self {
        Self { message, hint: hint.into() }
    }
}

/// What to do about a side that could not be read; `None` for errors of anything else.
#[must_use]
pub fn hint_of(error: &anyhow::Error) -> Option<&str> {
    error.chain().find_map(|cause| cause.downcast_ref::<Trouble>()).map(|trouble| trouble.hint.as_str())
}

/// Where something failed, as errors name it.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// The setting that names the database, such as `[local] url`.
    pub setting: &'static str,
    /// Host and database, or the path; never a user or a password.
    pub place: String,
    /// How long a statement may take.
    pub timeout: Duration,
}

impl Told {
    /// Why the database cannot be opened.
    pub fn unopened(&self, error: &sqlx::Error) -> anyhow::Error {
        let Self { setting, place, .. } = self;
        match error {
            sqlx::Error::Database(refusal) if is_about_access(&**refusal) => Unusable::new(
                format!("{setting}: {place} lets nobody in with it: {}", refusal.message()),
                format!("correct what {setting} names; docs/databases.md has the grants that are enough"),
            )
            .into(),
            sqlx::Error::Configuration(why) => {
                Unusable::new(format!("{setting} cannot be used: {why}"), "docs/databases.md has examples")
                    .into()
            }
            sqlx::Error::Tls(why) => Unusable::new(
                format!("{setting}: no safe connection to {place}: {why}"),
                "docs/databases.md says how each database's certificate is checked",
            )
            .into(),
            _ => Trouble::new(
                format!("{setting}: {place} cannot be reached: {}", said(error)),
                format!("see that it runs and that this machine may reach it; {AGAIN}"),
            )
            .into(),
        }
    }

    /// Why a statement gave no rows, or no more of them.
    pub fn stopped(&self, label: &str, error: &sqlx::Error) -> anyhow::Error {
        match error {
            sqlx::Error::Database(refusal) => self.refused(label, kind(&**refusal), refusal.message()),
            _ => self.broken(label, &said(error)),
        }
    }

    /// Why a file of SQLite gave no rows, or no more of them.
    pub fn stopped_by_sqlite(&self, label: &str, error: &rusqlite::Error) -> anyhow::Error {
        match error {
            rusqlite::Error::SqliteFailure(failure, message) => {
                let message = message.clone().unwrap_or_else(|| failure.to_string());
                self.refused(label, code_kind(&failure.extended_code.to_string()), &message)
            }
            // Of what was bound and of the thread, and nothing that a statement says.
            _ => self.broken(label, "it was not read to its end"),
        }
    }

    /// Why a file of SQLite cannot be opened.
    pub fn unopened_by_sqlite(&self, error: &rusqlite::Error) -> anyhow::Error {
        let Self { setting, place, .. } = self;
        let hint = format!("see that this user may read it and its folder; {AGAIN}");
        Trouble::new(format!("{setting}: {place} cannot be opened: {error}"), hint).into()
    }

    fn refused(&self, label: &str, refusal: Refusal, message: &str) -> anyhow::Error {
        match refusal {
            Refusal::TooLong => self.too_long(label, message),
            Refusal::Passing => {
                Trouble::new(format!("{label}: {} stopped it: {message}", self.place), AGAIN).into()
            }
            Refusal::Standing if is_denied(message) => Unusable::new(
                format!("{label}: the database refuses it: {message}"),
                format!(
                    "as the database's owner give the role of {} the grant that is missing, as in: grant select on … to …; \
                     docs/databases.md and docs/targets.md list those that are enough",
                    self.setting
                ),
            )
            .into(),
            Refusal::Standing => Unusable::new(
                format!("{label}: the database refuses it: {message}"),
                "correct the statement; its columns are the contract, its tables are yours",
            )
            .into(),
        }
    }

    fn broken(&self, label: &str, why: &str) -> anyhow::Error {
        Trouble::new(format!("{label}: the connection to {} broke: {why}", self.place), AGAIN).into()
    }

    /// A statement took longer than it may.
    pub fn too_long(&self, label: &str, why: &str) -> anyhow::Error {
        Trouble::new(
            format!(
                "{label}: stopped by the time limit for statements ({} s): {why}",
                self.timeout.as_secs()
            ),
            "give what its where clause compares an index, or raise [limits] statement_timeout",
        )
        .into()
    }
}

/// An error and what caused it; none of a driver's errors repeats the URL.
fn said(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(refusal) => refusal.message().to_owned(),
        other => other.to_string(),
    }
}

/// Whether a grant is missing, in the words of PostgreSQL (`permission denied for table x`) and of MySQL and MariaDB
/// (`SELECT command denied to user`).
fn is_denied(message: &str) -> bool {
    message.starts_with("permission denied") || message.contains(" command denied to user")
}

/// Whether others were in the way, so that the same again may work: a lock that was waited for too long, a deadlock,
/// a conflict of two transactions.
pub(super) fn is_in_the_way(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else { return false };
    if let Some(refusal) = refusal.try_downcast_ref::<MySqlDatabaseError>() {
        return matches!(refusal.number(), 1205 | 1213);
    }
    refusal.code().is_some_and(|code| {
        let sqlite = code.parse::<u32>().map(|code| code & 0xff);
        matches!(&*code, "40001" | "40P01" | "55P03") || (code.len() < 5 && matches!(sqlite, Ok(5 | 6)))
    })
}

/// What a database says against this one statement with these values, such as a constraint; its code where its words
/// may repeat a value (`is_quiet`). `None`: it is about something else than the values.
pub(super) fn said_against(error: &sqlx::Error, is_quiet: bool) -> Option<String> {
    let sqlx::Error::Database(refusal) = error else { return None };
    if kind(&**refusal) != Refusal::Standing || is_about_access(&**refusal) || is_about_rights(&**refusal) {
        return None;
    }
    let code = refusal.code().unwrap_or_default();
    Some(if is_quiet { format!("error {code} of the database") } else { one_line(refusal.message()) })
}

/// A grant that is missing, or a database that nobody may write.
fn is_about_rights(refusal: &dyn DatabaseError) -> bool {
    if let Some(refusal) = refusal.try_downcast_ref::<MySqlDatabaseError>() {
        return matches!(refusal.number(), 1142 | 1143 | 1227 | 1290 | 1792);
    }
    refusal.code().is_some_and(|code| matches!(&*code, "42501" | "25006" | "8"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// It took longer than it may.
    TooLong,
    /// The same statement may work later.
    Passing,
    /// It never will as it stands.
    Standing,
}

fn kind(refusal: &dyn DatabaseError) -> Refusal {
    if let Some(refusal) = refusal.try_downcast_ref::<MySqlDatabaseError>() {
        return mysql_kind(refusal.number(), refusal.code().unwrap_or_default());
    }
    refusal.code().map_or(Refusal::Standing, |code| code_kind(&code))
}

/// SQLite's primary result codes for an interrupt, and for a database that is busy or locked, has no memory, or whose
/// file cannot be read (<https://sqlite.org/rescode.html>); PostgreSQL's code of a cancelled statement, and its
/// classes of errors that a statement has no part in: connection, conflict, resources, operator, system
/// (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
fn code_kind(code: &str) -> Refusal {
    match code.get(..2) {
        Some(class) if code.len() == 5 => match class {
            _ if code == "57014" => Refusal::TooLong,
            "08" | "40" | "53" | "57" | "58" => Refusal::Passing,
            _ => Refusal::Standing,
        },
        _ => match code.parse::<u32>().map(|code| code & 0xff) {
            Ok(9) => Refusal::TooLong,
            Ok(5 | 6 | 7 | 10 | 14) => Refusal::Passing,
            _ => Refusal::Standing,
        },
    }
}

/// MySQL's numbers say more than its SQLSTATEs, of which `HY000` and `42000` mean nearly anything
/// (<https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html>,
/// <https://mariadb.com/kb/en/mariadb-error-codes/>).
fn mysql_kind(number: u16, sql_state: &str) -> Refusal {
    match number {
        // ER_STATEMENT_TIMEOUT of MariaDB, ER_QUERY_TIMEOUT of MySQL.
        1969 | 3024 => Refusal::TooLong,
        // No room or memory, shutdown, lock wait, deadlock, killed, a table that changed its form, too many
        // connections of a user, offline mode, packets.
        1021
        | 1037
        | 1038
        | 1040
        | 1041
        | 1053
        | 1077..=1081
        | 1129
        | 1153..=1161
        | 1180
        | 1184
        | 1203
        | 1205
        | 1206
        | 1213
        | 1226
        | 1290
        | 1317
        | 1412
        | 1637
        | 1836
        | 1927
        | 3032
        | 3168
        | 3169 => Refusal::Passing,
        _ if matches!(sql_state.get(..2), Some("08" | "40" | "53" | "57" | "70")) => Refusal::Passing,
        _ => Refusal::Standing,
    }
}

/// Whether nobody gets in with this user, password or name of a database: PostgreSQL's class 28 (authorization), 3D000
/// (no such database) and 42501 (no privilege); MySQL's access denied (1044, 1045, 1698), no such database (1049),
/// host not allowed (1130) and authentication plugins that do not fit (1251, 1524, 2059); SQLite's `SQLITE_NOTADB` (26).
fn is_about_access(refusal: &dyn DatabaseError) -> bool {
    if let Some(refusal) = refusal.try_downcast_ref::<MySqlDatabaseError>() {
        return matches!(refusal.number(), 1044 | 1045 | 1049 | 1130 | 1251 | 1524 | 1698 | 2059);
    }
    let code = refusal.code();
    code.is_some_and(|code| {
        code.len() == 5 && code.starts_with("28") || matches!(&*code, "3D000" | "42501" | "26")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_that_is_missing_is_told_from_a_wrong_statement() {
        assert!(is_denied("permission denied for table refunds"));
        assert!(is_denied("SELECT command denied to user 'reader'@'localhost' for table `shop`.`refunds`"));
        assert!(!is_denied("relation \"refund\" does not exist"));
    }

    #[test]
    fn what_passes_is_told_from_what_stands() {
        for (code, expected) in [
            ("57014", Refusal::TooLong),
            ("9", Refusal::TooLong),
            ("57P01", Refusal::Passing),
            ("08006", Refusal::Passing),
            ("53300", Refusal::Passing),
            ("40001", Refusal::Passing),
            ("5", Refusal::Passing),
            ("261", Refusal::Passing),
            ("42P01", Refusal::Standing),
            ("42501", Refusal::Standing),
            ("22012", Refusal::Standing),
            ("1", Refusal::Standing),
        ] {
            assert_eq!(code_kind(code), expected, "{code}");
        }
        for (number, state, expected) in [
            (1969, "70100", Refusal::TooLong),
            (3024, "HY000", Refusal::TooLong),
            (1205, "HY000", Refusal::Passing),
            (1213, "40001", Refusal::Passing),
            (1053, "08S01", Refusal::Passing),
            (1927, "70100", Refusal::Passing),
            (1142, "42000", Refusal::Standing),
            (1146, "42S02", Refusal::Standing),
            (1064, "42000", Refusal::Standing),
        ] {
            assert_eq!(mysql_kind(number, state), expected, "{number}");
        }
    }
}
