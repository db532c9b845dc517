//! A Stripe-shaped API on loopback, read only: the lists of a world and its objects by id, with the
//! provider's paging, errors, limits and memory, and faults on demand.
//!
//! It stands in the world's time, not in the host's: events older than 30 days before the world's
//! `now` are not listed.

mod chaos;
mod invoice_payments;
mod list;
mod reply;
mod serve;

pub use chaos::{Change, Endpoints, Faults, Mishap, RateLimit, RetryAfter};
pub use serve::Emulator;

use super::world::{Stream, World};
use chaos::Buckets;
use list::{Row, Table};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was asked of an emulator.
#[derive(Debug, Default)]
pub struct Counters {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: BTreeMap<String, u64>,
    statuses: BTreeMap<u16, u64>,
    urls: HashMap<String, u32>,
    writes: u64,
}

impl Counters {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests to an endpoint, such as `events` (the list) or `events/{id}`.
    #[must_use]
    pub fn requests(&self, endpoint: &str) -> u64 {
        self.seen().requests.get(endpoint).copied().unwrap_or(0)
    }

    /// Requests in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.seen().requests.values().sum()
    }

    /// Answers with this HTTP status.
    #[must_use]
    pub fn answers(&self, status: u16) -> u64 {
        self.seen().statuses.get(&status).copied().unwrap_or(0)
    }

    /// Requests that were not GET. A reconciliation makes none.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.seen().writes
    }

    /// Counts a request; how often this very one came before.
    fn count(&self, endpoint: &str, url: &str, is_write: bool) -> u32 {
        let mut seen = self.seen();
        *seen.requests.entry(endpoint.to_owned()).or_default() += 1;
        seen.writes += u64::from(is_write);
        let times = seen.urls.entry(url.to_owned()).or_default();
        *times += 1;
        *times - 1
    }

    fn count_answer(&self, status: u16) {
        *self.seen().statuses.entry(status).or_default() += 1;
    }
}

/// One account's lists.
#[derive(Debug)]
struct Account {
    tables: BTreeMap<Stream, Table>,
    hidden: Vec<(Stream, Row)>,
    list_requests: BTreeMap<Stream, u64>,
    changes: Vec<(Stream, u64, Change)>,
}

impl Account {
    fn new(world: &World, faults: &Faults) -> Self {
        let mut tables: BTreeMap<Stream, Table> = world
            .records
            .iter()
            .map(|(stream, records)| {
                let rows = records.iter().cloned();
                let rows = rows.map(|record| Row { record, kind: "", is_pending: false });
                (*stream, Table::new(rows.collect()))
            })
            .collect();
        let listed = world.events.iter().filter(|event| event.created_s >= world.events_from_s());
        let rows = listed.map(|event| Row {
            record: super::Record {
                id: event.id.clone(),
                created_s: event.created_s,
                sequence: event.sequence,
                body: event.body.clone(),
                includable: None,
            },
            kind: event.kind,
            is_pending: event.pending_webhooks > 0,
        });
        tables.insert(Stream::Events, Table::new(rows.collect()));
        let mut hidden = Vec::new();
        for (stream, _, change) in &faults.changes {
            if let Change::Reveal(id) = change
                && let Some(row) = tables.get_mut(stream).and_then(|table| table.remove(id))
            {
                hidden.push((*stream, row));
            }
        }
        Self { tables, hidden, list_requests: BTreeMap::new(), changes: faults.changes.clone() }
    }

    /// Counts a list request and carries out the changes that are due before it.
    fn begin_list(&mut self, stream: Stream) -> u64 {
        let count = self.list_requests.entry(stream).or_default();
        let earlier = *count;
        *count += 1;
        let (due, rest) = std::mem::take(&mut self.changes)
            .into_iter()
            .partition(|(changed, after, _)| *changed == stream && *after <= earlier);
        self.changes = rest;
        for (_, _, change) in due {
            self.change(stream, change);
        }
        earlier + 1
    }

    fn change(&mut self, stream: Stream, change: Change) {
        let table = self.tables.entry(stream).or_default();
        match change {
            Change::Insert(record) => table.insert(Row { record, kind: "", is_pending: false }),
            Change::Remove(id) => drop(table.remove(&id)),
            Change::Reveal(id) => {
                let found = self.hidden.iter().position(|(s, row)| *s == stream && row.record.id == id);
                if let Some(at) = found {
                    table.insert(self.hidden.swap_remove(at).1);
                }
            }
        }
    }

    fn find(&self, id: &str) -> Option<&Row> {
        self.tables.values().find_map(|table| table.get(id))
    }
}

/// What requests share.
#[derive(Debug)]
struct Shared {
    key: String,
    faults: Faults,
    accounts: Mutex<BTreeMap<String, Account>>,
    buckets: Mutex<Buckets>,
    /// Whether answers are held back.
    held: tokio::sync::watch::Sender<bool>,
    counters: std::sync::Arc<Counters>,
}
