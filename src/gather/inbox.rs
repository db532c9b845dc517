//! The inbox: the rows of the team's `inbox.sql` become facts, and single bodies are read on demand.

use super::columns::{Columns, Contract, RowReader, Scopes};
use super::reader::{Bind, Reader};
use super::source::{FILTER_IDS, FactSink, Source, window_binds};
use super::statement::Statement;
use crate::config::{Settings, Unusable, shown};
use crate::record::{Fact, InboxEvent, InboxStatus, Scope, Window};
use anyhow::{Context, Result};
use std::collections::BTreeSet;

pub(super) const BINDS: [&str; 2] = ["from_us", "until_us"];
pub(super) const BODY_BINDS: [&str; 4] = ["provider", "account", "mode", "event_id"];
pub(super) const INBOX: Contract = Contract {
    required: &["provider", "account", "mode", "event_id", "event_type", "received_at_us", "status"],
    one_of: &[],
    optional: &["body_sha256"],
    row_id: "event_id",
};
pub(super) const BODY: Contract =
    Contract { required: &["body"], one_of: &[], optional: &["event_id"], row_id: "event_id" };

/// What `grouped` gives of `inbox.sql`.
const RECEIVED: [&str; 5] = ["provider", "account", "mode", "event_type", "status"];
const GROUPS: Contract = Contract {
    required: &["provider", "account", "mode", "event_type", "status", "received_at_us", "without_id"],
    one_of: &[],
    optional: &[],
    row_id: "event_type",
};

/// Takes a scope, a type that it received (or none) and when it last did, Unix µs.
pub type ReceivedSink<'a> = &'a mut (dyn FnMut(Scope, &str, i64) + Send);

/// The inbox, open and checked against its contract.
#[derive(Debug)]
pub struct Inbox {
    pub(super) source: Source,
    events: (Statement, Columns),
    body: (Statement, Columns),
}

impl Inbox {
    /// Opens the inbox and checks its statements; `None` where the team has none.
    ///
    /// # Errors
    /// [`Unusable`] when a statement or its columns do not keep the contract.
    pub async fn open(settings: &Settings) -> Result<Option<Self>> {
        let Some(source) = Source::open(&settings.inbox, settings, "[inbox] url").await? else {
            return Ok(None);
        };
        Self::over(source, settings).await.map(Some)
    }

    /// The same inbox over a source that is open.
    pub(super) async fn over(source: Source, settings: &Settings) -> Result<Self> {
        let folder = &settings.local.queries;
        let events = source.statement(folder, "inbox.sql", &BINDS, &INBOX, &["event_id"]).await?;
        let body = source.statement(folder, "inbox_body.sql", &BODY_BINDS, &BODY, &[]).await?;
        Ok(Self { source, events, body })
    }

    pub(super) async fn events(
        &self,
        reader: &mut Reader,
        window: Window,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        self.read(reader, self.events.0.sql().to_owned(), window, None, sink).await
    }

    /// Which types each scope received in `window`. The database tells them apart where it can do so byte for byte;
    /// where it cannot, or a row is not as it must be, all rows are read, so that the row is named.
    pub(super) async fn received(
        &self,
        reader: &mut Reader,
        window: Window,
        sink: ReceivedSink<'_>,
    ) -> Result<()> {
        let (statement, _) = &self.events;
        let grouped = statement.grouped(self.source.flavour(), &RECEIVED, "received_at_us", "event_id");
        if let Some(sql) = grouped
            && let Some(groups) = self.groups(reader, sql, window).await?
        {
            for (scope, event_type, last_us) in groups {
                sink(scope, &event_type, last_us);
            }
            return Ok(());
        }
        let mut note = |fact: Fact| {
            if let Fact::InboxEvent(event) = fact {
                sink(event.scope, &event.event_type, event.received_at_us);
            }
            Ok(())
        };
        self.events(reader, window, &mut note).await.map(drop)
    }

    /// `None` where a group is not as it must be.
    async fn groups(
        &self,
        reader: &mut Reader,
        sql: String,
        window: Window,
    ) -> Result<Option<Vec<(Scope, String, i64)>>> {
        let (statement, _) = &self.events;
        let names: Vec<String> = GROUPS.required.iter().map(|name| (*name).to_owned()).collect();
        // In the order of the statement.
        let columns = Columns::find(&statement.file, &GROUPS, &names)?;
        let mut rows = reader.rows(&statement.file, sql, window_binds(statement, window, &[])).await?;
        let mut scopes = Scopes::default();
        let mut groups = Vec::new();
        let mut are_right = true;
        while let Some(row) = rows.next().await? {
            let row = columns.row(&row, 1);
            match group(&row, &mut scopes) {
                Ok(Some(group)) => groups.push(group),
                Ok(None) | Err(_) => are_right = false,
            }
        }
        Ok(are_right.then_some(groups))
    }

    pub(super) async fn events_of(
        &self,
        reader: &mut Reader,
        scope: &Scope,
        event_ids: &BTreeSet<String>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        let ids = event_ids.iter().map(String::as_str).filter(|id| self.source.can_hold(id));
        let ids: Vec<&str> = ids.collect();
        let mut count = 0;
        let mut in_scope = |fact: Fact| {
            if matches!(&fact, Fact::InboxEvent(event) if event.scope == *scope) {
                count += 1;
                sink(fact)?;
            }
            Ok(())
        };
        for batch in ids.chunks(FILTER_IDS) {
            let sql = self.events.0.filtered("event_id", batch.len());
            let all_time = self.source.all_time();
            self.read(reader, sql, all_time, Some(("event_id", batch)), &mut in_scope).await?;
        }
        Ok(count)
    }

    /// The bytes of one event as received; `None` where they are no longer kept.
    ///
    /// # Errors
    /// When reading fails.
    pub async fn body(&self, scope: &Scope, event_id: &str) -> Result<Option<Vec<u8>>> {
        let (statement, columns) = &self.body;
        if !self.source.can_hold(event_id) {
            return Ok(None);
        }
        let text = |bind: &&str| match *bind {
            "provider" => scope.provider.to_string(),
            "account" => scope.account.to_string(),
            "mode" => scope.mode.to_string(),
            _ => event_id.to_owned(),
        };
        let binds = statement.binds.iter().map(text).map(Bind::Text).collect();
        let mut reader = self.source.reader().await?;
        let mut rows = reader.rows(&statement.file, statement.sql().to_owned(), binds).await?;
        let mut found: Option<Option<Vec<u8>>> = None;
        let mut number = 0;
        while let Some(row) = rows.next().await? {
            number += 1;
            let is_named = columns.place("event_id").is_some();
            if is_named && !columns.row(&row, number).is_wanted(Some(("event_id", &[event_id])))? {
                continue;
            }
            if found.is_some() && !is_named {
                return Err(Unusable::new(
                    format!("{}: gives more than one row for {event_id}", statement.file),
                    "the database may take other ids for the same: give the column event_id, too, so that they \
                     are told apart",
                )
                .into());
            }
            if found.is_none() {
                let place = columns.place("body").context("the column body is gone")?;
                let body = row.bytes(place);
                found = Some(
                    body.with_context(|| format!("read the body of {event_id} with {}", statement.file))?,
                );
            }
        }
        drop(rows);
        reader.end().await?;
        Ok(found.flatten())
    }

    async fn read(
        &self,
        reader: &mut Reader,
        sql: String,
        window: Window,
        only: Option<(&str, &[&str])>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        let (statement, columns) = &self.events;
        let ids = only.map_or(&[][..], |(_, ids)| ids);
        let mut rows = reader.rows(&statement.file, sql, window_binds(statement, window, ids)).await?;
        let mut unknown = BTreeSet::new();
        let mut scopes = Scopes::default();
        let mut number = 0;
        while let Some(row) = rows.next().await? {
            number += 1;
            let row = columns.row(&row, number);
            if !row.is_wanted(only)? {
                continue;
            }
            match event(&row, &mut scopes)? {
                Ok(event) => sink(Fact::InboxEvent(event))?,
                Err(word) => {
                    unknown.insert(word);
                }
            }
        }
        refuse_unknown(&statement.file, &unknown)?;
        Ok(number)
    }
}

/// An event, or the status word that is not known.
pub(super) fn event(
    row: &RowReader<'_>,
    scopes: &mut Scopes,
) -> Result<Result<InboxEvent, String>, Unusable> {
    let event_id = row.key("event_id")?;
    let word = row.word("status")?;
    let Some(status) = status(&word) else { return Ok(Err(word.into_owned())) };
    let mut body_sha256 = row.text("body_sha256")?;
    body_sha256.make_ascii_lowercase();
    Ok(Ok(InboxEvent {
        scope: row.scope(scopes)?,
        event_id,
        event_type: row.text("event_type")?,
        received_at_us: row.instant("received_at_us")?,
        status,
        body_sha256,
    }))
}

/// A group of events; `None` where one of them has no id or a status word that is not known.
fn group(row: &RowReader<'_>, scopes: &mut Scopes) -> Result<Option<(Scope, String, i64)>, Unusable> {
    let word = row.word("status")?;
    if status(&word).is_none() || row.integer("without_id")? != Some(0) {
        return Ok(None);
    }
    Ok(Some((row.scope(scopes)?, row.text("event_type")?, row.instant("received_at_us")?)))
}

/// What a word means, however it is spelled: nearly every one is in lower case as it stands, and is not copied.
fn status(word: &str) -> Option<InboxStatus> {
    known(word).or_else(|| known(&word.trim().to_ascii_lowercase()))
}

/// Our words, and those that inboxes commonly use, in lower case.
fn known(word: &str) -> Option<InboxStatus> {
    Some(match word {
        "received" | "pending" | "new" | "queued" | "unprocessed" | "processing" => InboxStatus::Received,
        "applied" | "processed" | "done" | "completed" | "succeeded" | "success" => InboxStatus::Applied,
        "superseded" => InboxStatus::Superseded,
        "ignored" | "skipped" => InboxStatus::Ignored,
        "parked" | "deferred" => InboxStatus::Parked,
        "dead" | "dead_letter" | "failed" | "error" | "errored" => InboxStatus::Dead,
        _ => return None,
    })
}

pub(super) fn refuse_unknown(file: &str, words: &BTreeSet<String>) -> Result<(), Unusable> {
    if words.is_empty() {
        return Ok(());
    }
    let listed: Vec<String> = words.iter().take(50).map(|word| shown(word)).collect();
    let known = InboxStatus::ALL.map(InboxStatus::as_str).join(", ");
    Err(Unusable::new(
        format!("{file}: no processing status is known for {}", listed.join(", ")),
        format!("give one of {known} with a case expression in the select"),
    ))
}
