//! What an error ends a command as, and what to do about it, in one line.

use super::Outcome;
use crate::cli::{Command, FindingsCommand, InboxCommand, OutboxCommand, UsageError};
use crate::config::Unusable;
use crate::provider;
use crate::store::NoStore;
use std::io::ErrorKind;

/// What a command has left that did not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Where it could not do its work, and nothing else is known of the error.
    trouble: &'static str,
    /// Where its arguments or the configuration cannot be used; empty where that goes without saying.
    refusal: &'static str,
}

impl Left {
    /// What this command leaves; `None` is a run, and what was not understood at all.
    #[must_use]
    pub fn by(command: Option<&Command>) -> Self {
        let refusal = if command.is_some_and(changes_what_is_named) { "nothing was changed" } else { "" };
        Self { trouble: left_by(command), refusal }
    }
}

/// Whether a person names what is to be changed, so that it matters whether a part of it was.
const fn changes_what_is_named(command: &Command) -> bool {
    match command {
        Command::Inbox(command) => matches!(command, InboxCommand::Retry(_) | InboxCommand::Discard(_)),
        Command::Outbox(command) => matches!(command, OutboxCommand::Retry(_)),
        Command::Findings(command) => {
            !matches!(command, FindingsCommand::List(_) | FindingsCommand::Show { .. })
        }
        Command::Replay(args) => args.to.is_none(),
        _ => false,
    }
}

const fn left_by(command: Option<&Command>) -> &'static str {
    const READS: &str = "this command only reads, so nothing was changed; it can be run again as it is";
    match command {
        Some(
            Command::Status(_)
            | Command::Show(_)
            | Command::Man
            | Command::Completions { .. }
            | Command::Findings(FindingsCommand::List(_) | FindingsCommand::Show { .. })
            | Command::Inbox(InboxCommand::List { .. } | InboxCommand::Dead { .. } | InboxCommand::Show(_))
            | Command::Outbox(OutboxCommand::List { .. } | OutboxCommand::Show { .. }),
        ) => READS,
        Some(Command::Serve(_)) => "whatever was answered 2xx is safe; start it again",
        Some(Command::Compare(_)) => {
            "nothing was half-written: --out appears whole or not at all; the same command begins again"
        }
        Some(Command::Init(_)) => "what it wrote stays and is not written over; run it again",
        Some(Command::Demo(_)) => "nothing outside of its folder was touched; run it again",
        Some(Command::Replay(args)) if args.to.is_some() => {
            "nothing was applied here; what was sent until then is kept with its reason: `recon inbox show EVENT`"
        }
        _ => "nothing was half-written; the same command goes on from here",
    }
}

/// What an error ends as, and what to do about it.
#[must_use]
pub fn explain(error: &anyhow::Error, left: Left) -> (Outcome, String) {
    // Running it again as it stands cannot help.
    let refused = cause::<Unusable>(error).map(|unusable| &unusable.hint);
    if let Some(hint) = refused.or_else(|| cause::<UsageError>(error).map(|usage| &usage.hint)) {
        let told = [&**hint, left.refusal].into_iter().filter(|text| !text.is_empty());
        return (Outcome::Config, told.collect::<Vec<_>>().join("; "));
    }
    let known = provider::hint_of(error).or_else(|| crate::gather::hint_of(error));
    let hint = match known {
        Some(hint) => hint.to_owned(),
        None => surroundings_hint(error, left.trouble).unwrap_or_else(|| left.trouble.to_owned()),
    };
    (Outcome::Incomplete, hint)
}

fn cause<E: std::error::Error + Send + Sync + 'static>(error: &anyhow::Error) -> Option<&E> {
    error.chain().find_map(|cause| cause.downcast_ref::<E>())
}

/// What to do where there is no store, it cannot be reached, or the machine refuses: a disk that is full, over a quota or
/// not to be written, an address that cannot be had.
fn surroundings_hint(error: &anyhow::Error, left: &str) -> Option<String> {
    if cause::<NoStore>(error).is_some() {
        return Some(NoStore::HINT.to_owned());
    }
    let of_store = cause::<sqlx::Error>(error).and_then(store_hint);
    let of_machine = || error.chain().find_map(|cause| machine_hint(cause.downcast_ref::<std::io::Error>()?));
    let hint = of_store.or_else(of_machine)?;
    Some(format!("{hint}; {left}"))
}

/// What to do about what the store's database says.
fn store_hint(error: &sqlx::Error) -> Option<&'static str> {
    const REACH: &str = "see that the database of `[store] url` runs and that this machine may reach it";
    let refusal = match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::Tls(_) => return Some(REACH),
        sqlx::Error::Database(refusal) => refusal,
        _ => return None,
    };
    let code = refusal.code()?;
    // SQLSTATE has five characters, https://www.postgresql.org/docs/current/errcodes-appendix.html; SQLite's codes are
    // numbers of at most four, the last eight bits being the kind, https://sqlite.org/rescode.html.
    if code.len() == 5 {
        return match &*code {
            "42501" => {
                Some("grant the role of the store's URL select, insert, update and delete on recon's tables")
            }
            "3D000" | "28000" | "28P01" => {
                Some("correct the user, the password or the database that `[store] url` names")
            }
            "53100" => Some("make room where the store lies"),
            "55P03" | "40001" | "40P01" => {
                Some("something else holds a lock in the store: wait until it ends")
            }
            code if code.starts_with("57P") || code.starts_with("08") || code.starts_with("53") => {
                Some(REACH)
            }
            _ => None,
        };
    }
    match code.parse::<u32>().ok()? & 0xff {
        5 | 6 => Some("another process holds the store's lock: wait until it ends"),
        8 => Some("let this user write the store's file and its folder"),
        10 | 13 => Some("make room where the store lies, and see that its disk works"),
        14 => Some(
            "`[store] url` needs a folder that is there, where this user may write, and a file name in it",
        ),
        11 | 26 => Some(
            "the file that `[store] url` names is no store, or is damaged: name another one, or restore it \
             from a backup",
        ),
        _ => None,
    }
}

/// What to do about what the system refuses.
fn machine_hint(error: &std::io::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Some("make room"),
        ErrorKind::AddrInUse => {
            Some("another process listens there: end it, or set another `[receive] listen`")
        }
        ErrorKind::AddrNotAvailable => Some(
            "this machine has no such address (yet): correct `[receive] listen`, or wait for the network",
        ),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Some("let this user write there, or name another place in the configuration")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_away_and_an_address_that_is_taken_say_what_to_do() {
        let left = Left::by(None);
        let away = anyhow::Error::new(sqlx::Error::Io(ErrorKind::ConnectionRefused.into()));
        let (outcome, hint) = explain(&away, left);
        assert_eq!(outcome, Outcome::Incomplete);
        assert!(hint.starts_with("see that the database of `[store] url` runs"), "{hint}");
        assert!(hint.ends_with(left.trouble), "{hint}");
        let taken = anyhow::Error::new(std::io::Error::from(ErrorKind::AddrInUse));
        assert!(explain(&taken, left).1.starts_with("another process listens there"));
        assert_eq!(explain(&anyhow::anyhow!("a riddle"), left).1, left.trouble);
        let refused = anyhow::Error::new(UsageError::new("no such event", "look"));
        assert_eq!(explain(&refused, left), (Outcome::Config, "look".to_owned()));
        let left = Left { refusal: "nothing was changed", ..left };
        assert_eq!(explain(&refused, left).1, "look; nothing was changed");
    }
}
