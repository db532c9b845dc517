//! What store and team hold at one moment, as they say it themselves.

use crate::store::Store;
use anyhow::{Context, Result};
use sqlx::Row;

const INBOX: &str = include_str!("../../../queries/demo/recovery_inbox.sql");
const LEDGER: &str = include_str!("../../../queries/demo/recovery_ledger.sql");
const OUTBOX: &str = include_str!("../../../queries/demo/recovery_outbox.sql");

/// A row of the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// Event id.
    pub event_id: String,
    /// Event type.
    pub event_type: String,
    /// How it stands.
    pub status: String,
    /// Deliveries that were committed.
    pub deliveries: i64,
    /// Attempts to apply it.
    pub attempts: i64,
}

/// A row of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// Effect key.
    pub effect_key: String,
    /// The object that it belongs to.
    pub object_id: String,
    /// Minor units.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: String,
    /// The event that brought it.
    pub event_id: String,
}

/// A row of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// Idempotency key.
    pub key: String,
    /// Attempts to send it.
    pub attempts: i64,
    /// Whether it is known to be accepted.
    pub is_sent: bool,
}

/// What the team's side heard under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// Idempotency key.
    pub key: String,
    /// Calls.
    pub calls: usize,
    /// Different bodies among them.
    pub bodies: usize,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The inbox.
    pub inbox: Vec<InboxRow>,
    /// The ledger.
    pub ledger: Vec<LedgerRow>,
    /// The outbox.
    pub outbox: Vec<OutboxRow>,
    /// The team's side.
    pub calls: Vec<CallRow>,
}

impl Snapshot {
    /// Reads the store.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn of(store: &Store, calls: Vec<CallRow>) -> Result<Self> {
        let pool = store.pool();
        let inbox = sqlx::query(INBOX).fetch_all(pool).await.context("read the inbox")?;
        let ledger = sqlx::query(LEDGER).fetch_all(pool).await.context("read the ledger")?;
        let outbox = sqlx::query(OUTBOX).fetch_all(pool).await.context("read the outbox")?;
        let inbox = inbox.iter().map(|row| InboxRow {
            event_id: row.get("event_id"),
            event_type: row.get("event_type"),
            status: row.get("status"),
            deliveries: row.get("deliveries"),
            attempts: row.get("attempts"),
        });
        let ledger = ledger.iter().map(|row| LedgerRow {
            effect_key: row.get("effect_key"),
            object_id: row.get("object_id"),
            amount_minor: row.get("amount_minor"),
            currency: row.get("currency"),
            event_id: row.get("event_id"),
        });
        let outbox = outbox.iter().map(|row| OutboxRow {
            key: row.get("idempotency_key"),
            attempts: row.get("attempts"),
            is_sent: row.get::<i64, _>("is_sent") == 1,
        });
        Ok(Self { inbox: inbox.collect(), ledger: ledger.collect(), outbox: outbox.collect(), calls })
    }
}
