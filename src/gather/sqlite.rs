//! SQLite read by a thread of its own, which hands rows on in batches: a row costs a copy of its bytes and no message
//! between threads, so a file gives millions of rows a second.
//!
//! The one thing to get right: the thread ends, and its transaction with it, as soon as nobody wants its rows.

use super::reader::Bind;
use super::rows::{Cell, NOT_UTF8, UNREADABLE};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Statement};
use sqlx::{Row, TypeInfo, ValueRef as _};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Rows, and bytes of their texts, that are handed on together.
const BATCH_ROWS: usize = 512;
const BATCH_BYTES: usize = 256 * 1024;
/// Batches that wait to be taken.
const BATCHES_MAX: usize = 4;
/// Instructions of SQLite's machine between two looks at the time.
pub(super) const STEPS: i32 = 20_000;
/// How long a lock of somebody else's is waited for.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(10);
/// SQLite sees one moment from the first read on.
const MOMENT: &str = "begin deferred; select count(*) from sqlite_master where 1 = 0";

/// Rows as they were read.
#[derive(Debug, Default)]
pub(super) struct Batch {
    columns: usize,
    cells: Vec<Held>,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Held {
    Null,
    Integer(i64),
    Real,
    Text(usize, usize),
    Blob(usize, usize),
}

/// One row of a batch.
#[derive(Clone, Debug)]
pub(super) struct SqliteRow {
    batch: Arc<Batch>,
    row: usize,
}

impl SqliteRow {
    /// A row that came another way.
    pub fn of(row: &sqlx::sqlite::SqliteRow) -> Self {
        let mut batch = Batch { columns: row.len(), ..Batch::default() };
        for place in 0..row.len() {
            let kind = row.try_get_raw(place).map(|value| {
                if value.is_null() { "NULL".to_owned() } else { value.type_info().name().to_owned() }
            });
            let number = || row.try_get_unchecked(place).map(ValueRef::Integer);
            let bytes: Vec<u8> = row.try_get_unchecked(place).unwrap_or_default();
            batch.add(match kind.as_deref() {
                Ok("INTEGER") => number().unwrap_or(ValueRef::Null),
                Ok("REAL") => ValueRef::Real(0.0),
                Ok("TEXT") => ValueRef::Text(&bytes),
                Ok("NULL") | Err(_) => ValueRef::Null,
                Ok(_) => ValueRef::Blob(&bytes),
            });
        }
        Self { batch: Arc::new(batch), row: 0 }
    }

    fn held(&self, place: usize) -> Option<Held> {
        if place >= self.batch.columns {
            return None;
        }
        self.batch.cells.get(self.row * self.batch.columns + place).copied()
    }

    /// The value at a place.
    pub fn cell(&self, place: usize) -> Result<Cell<'_>, &'static str> {
        Ok(match self.held(place).ok_or(UNREADABLE)? {
            Held::Null => Cell::Null,
            Held::Integer(number) => Cell::Integer(number),
            Held::Real => Cell::Real,
            Held::Text(from, until) => {
                let text = std::str::from_utf8(&self.batch.bytes[from..until]);
                Cell::Text(Cow::Borrowed(text.map_err(|_| NOT_UTF8)?))
            }
            Held::Blob(..) => Cell::Blob,
        })
    }

    /// The bytes of a text or binary value; `None` where it is none.
    pub fn bytes(&self, place: usize) -> Option<Vec<u8>> {
        match self.held(place)? {
            Held::Text(from, until) | Held::Blob(from, until) => Some(self.batch.bytes[from..until].to_vec()),
            Held::Integer(number) => Some(number.to_string().into_bytes()),
            Held::Null | Held::Real => None,
        }
    }
}

type Batches = mpsc::Sender<rusqlite::Result<Batch>>;

struct Ask {
    sql: String,
    binds: Vec<Bind>,
    timeout: Duration,
    batches: Batches,
}

/// An open transaction that may only read, on a thread of its own.
#[derive(Debug)]
pub(super) struct Session {
    asks: std::sync::mpsc::Sender<Ask>,
    thread: tokio::task::JoinHandle<()>,
}

impl std::fmt::Debug for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ask").field("sql", &self.sql).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens the file; everything that is read is of this moment.
    pub async fn begin(path: &str) -> rusqlite::Result<Self> {
        let path = path.to_owned();
        let (asks, asked) = std::sync::mpsc::channel::<Ask>();
        let (opened, is_open) = oneshot::channel();
        let thread = tokio::task::spawn_blocking(move || {
            let connection = match open(&path) {
                Ok(connection) => connection,
                Err(error) => return drop(opened.send(Err(error))),
            };
            if opened.send(Ok(())).is_err() {
                return;
            }
            while let Ok(ask) = asked.recv() {
                if let Err(error) = answer(&connection, &ask) {
                    // Nobody may be there to hear it.
                    ask.batches.blocking_send(Err(error)).ok();
                }
            }
        });
        // A thread that ended without a word has panicked; what follows fails then.
        is_open.await.unwrap_or(Ok(()))?;
        Ok(Self { asks, thread })
    }

    /// Asks for the rows of a statement.
    pub fn rows(&self, sql: String, binds: Vec<Bind>, timeout: Duration) -> Rows {
        let (batches, receiver) = mpsc::channel(BATCHES_MAX);
        // Where the thread is gone, the channel ends at once.
        self.asks.send(Ask { sql, binds, timeout, batches }).ok();
        Rows { receiver, batch: Arc::default(), next: 0 }
    }

    /// Ends the moment.
    pub async fn end(self) -> Result<(), tokio::task::JoinError> {
        drop(self.asks);
        self.thread.await
    }
}

/// Rows as they arrive.
pub(super) struct Rows {
    receiver: mpsc::Receiver<rusqlite::Result<Batch>>,
    batch: Arc<Batch>,
    next: usize,
}

impl Rows {
    /// The next row, `None` at the end.
    pub async fn next(&mut self) -> rusqlite::Result<Option<SqliteRow>> {
        loop {
            if self.next * self.batch.columns < self.batch.cells.len() {
                let row = SqliteRow { batch: Arc::clone(&self.batch), row: self.next };
                self.next += 1;
                return Ok(Some(row));
            }
            let Some(batch) = self.receiver.recv().await else {
                // The last batch has no rows; an end without it is none.
                return Err(rusqlite::Error::InvalidQuery);
            };
            let batch = batch?;
            if batch.cells.is_empty() {
                return Ok(None);
            }
            (self.batch, self.next) = (Arc::new(batch), 0);
        }
    }
}

fn open(path: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_WAIT)?;
    connection.execute_batch(MOMENT)?;
    Ok(connection)
}

/// Every batch, and one without rows at the end.
fn answer(connection: &Connection, ask: &Ask) -> rusqlite::Result<()> {
    let until = Instant::now() + ask.timeout;
    connection.progress_handler(STEPS, Some(move || Instant::now() >= until))?;
    let mut statement = connection.prepare(&ask.sql)?;
    bind(&mut statement, &ask.binds)?;
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut batch = Batch { columns, ..Batch::default() };
    while let Some(row) = rows.next()? {
        for place in 0..columns {
            batch.add(row.get_ref(place)?);
        }
        if batch.cells.len() >= BATCH_ROWS * columns || batch.bytes.len() >= BATCH_BYTES {
            let full = std::mem::replace(&mut batch, Batch { columns, ..Batch::default() });
            if ask.batches.blocking_send(Ok(full)).is_err() {
                return Ok(());
            }
        }
    }
    if !batch.cells.is_empty() {
        ask.batches.blocking_send(Ok(batch)).ok();
    }
    ask.batches.blocking_send(Ok(Batch::default())).ok();
    Ok(())
}

impl Batch {
    fn add(&mut self, value: ValueRef<'_>) {
        let held = match value {
            ValueRef::Null => Held::Null,
            ValueRef::Integer(number) => Held::Integer(number),
            ValueRef::Real(_) => Held::Real,
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                let from = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                let until = self.bytes.len();
                if matches!(value, ValueRef::Text(_)) {
                    Held::Text(from, until)
                } else {
                    Held::Blob(from, until)
                }
            }
        };
        self.cells.push(held);
    }
}

fn bind(statement: &mut Statement<'_>, binds: &[Bind]) -> rusqlite::Result<()> {
    for (index, bind) in binds.iter().enumerate() {
        let place = index + 1;
        match bind {
            Bind::Integer(number) => statement.raw_bind_parameter(place, number)?,
            Bind::Text(text) => statement.raw_bind_parameter(place, text)?,
            Bind::Bytes(bytes) => statement.raw_bind_parameter(place, bytes)?,
            Bind::NoInteger | Bind::NoText | Bind::NoBytes => {
                statement.raw_bind_parameter(place, rusqlite::types::Null)?;
            }
        }
    }
    Ok(())
}
