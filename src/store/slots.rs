//! Slots of a provider's limit: times at which one request may be sent, shared by all processes of a store.
//!
//! The one thing to get right: slots are handed out by one clock, the database server's or this machine's for a file,
//! and no two overlap, whoever asks for them.

use super::Store;
use super::lease::database_now_us;
use crate::record::Scope;
use anyhow::{Context, Result};
use sqlx::Row;

/// A begin that lies further ahead was written by a clock that has been set back since, µs.
const STRANGE_US: i64 = 2 * 3600 * 1_000_000;

/// One limit of one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitKey {
    /// The account.
    pub scope: Scope,
    /// The endpoint; empty for the account as a whole.
    pub endpoint: String,
}

/// Time of a limit that is one process's now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Where it begins, Unix µs by the store's clock.
    pub first_at_us: i64,
    /// That clock when it was reserved.
    pub now_us: i64,
}

impl Store {
    /// Reserves `length_us` of the limit's time, from now or from the end of what others hold.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn take_slots(&self, key: &LimitKey, length_us: i64) -> Result<Reserved> {
        const SQL: &str = include_str!("../../queries/store/request_slot_take.sql");
        const CONTEXT: &str = "take slots of a provider's limit";
        let mut tx = self.begin().await.context(CONTEXT)?;
        let now_us = database_now_us(&mut tx).await?;
        let query = sqlx::query(SQL).bind(&*key.scope.provider).bind(&*key.scope.account);
        let query = query.bind(&*key.scope.mode).bind(&*key.endpoint).bind(now_us).bind(length_us);
        let query = query.bind(now_us.saturating_add(STRANGE_US));
        let row = query.fetch_one(&mut *tx).await.context(CONTEXT)?;
        let first_at_us = row.try_get("first_at_us")?;
        tx.commit().await.context(CONTEXT)?;
        Ok(Reserved { first_at_us, now_us })
    }

    /// Nobody takes a slot of this limit that begins within `pause_us` from now.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn delay_slots(&self, key: &LimitKey, pause_us: i64) -> Result<()> {
        const SQL: &str = include_str!("../../queries/store/request_slot_delay.sql");
        const CONTEXT: &str = "delay slots of a provider's limit";
        let mut tx = self.begin().await.context(CONTEXT)?;
        let until_us = database_now_us(&mut tx).await?.saturating_add(pause_us);
        let query = sqlx::query(SQL).bind(&*key.scope.provider).bind(&*key.scope.account);
        let query = query.bind(&*key.scope.mode).bind(&*key.endpoint).bind(until_us);
        query.fetch_optional(&mut *tx).await.context(CONTEXT)?;
        tx.commit().await.context(CONTEXT)
    }
}
