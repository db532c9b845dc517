//! Both local sides at one moment, the only way to read their rows: what the statements of a side give belongs together, whatever is written meanwhile.
//!
//! The one thing to get right: a moment is a transaction that stays open, so nobody waits for a provider with one.

use super::inbox::ReceivedSink;
use super::reader::Reader;
use super::{FactSink, Inbox, LocalBooks};
use crate::clock;
use crate::record::{Scope, Window};
use anyhow::Result;
use std::collections::BTreeSet;

/// The sides as they stood when it began.
pub struct Moment<'a> {
    local: Option<&'a LocalBooks>,
    inbox: Option<&'a Inbox>,
    local_reader: Option<Reader>,
    /// None where the inbox is in the database of the books: one moment is that of both.
    inbox_reader: Option<Reader>,
    /// Unix µs: what was committed by then, and can be read at all, is seen.
    pub as_of_us: i64,
}

impl<'a> Moment<'a> {
    /// Begins one. It must be ended by [`Self::end`]; one that is dropped, as after an error, ends a little later.
    ///
    /// # Errors
    /// When a database cannot be reached.
    pub async fn begin(local: Option<&'a LocalBooks>, inbox: Option<&'a Inbox>) -> Result<Self> {
        let as_of_us = clock::now_us();
        let local_reader = match local {
            Some(books) => Some(books.source.reader().await?),
            None => None,
        };
        let is_shared = |inbox: &Inbox| local.is_some_and(|books| books.source.is_same_as(&inbox.source));
        let inbox_reader = match inbox {
            Some(inbox) if !is_shared(inbox) => Some(inbox.source.reader().await?),
            _ => None,
        };
        Ok(Self { local, inbox, local_reader, inbox_reader, as_of_us })
    }

    fn books(&mut self) -> Option<(&'a LocalBooks, &mut Reader)> {
        self.local.zip(self.local_reader.as_mut())
    }

    fn events_reader(&mut self) -> Option<(&'a Inbox, &mut Reader)> {
        let reader = self.inbox_reader.as_mut().or(self.local_reader.as_mut());
        self.inbox.zip(reader)
    }

    /// Effects booked in `window`; answers how many rows there were.
    ///
    /// # Errors
    /// [`crate::config::Unusable`] when a row does not keep the contract; else when reading or the sink fails.
    pub async fn effects(&mut self, window: Window, sink: FactSink<'_>) -> Result<u64> {
        match self.books() {
            Some((books, reader)) => books.effects(reader, window, sink).await,
            None => Ok(0),
        }
    }

    /// Statuses changed in `window`; answers how many rows there were.
    ///
    /// # Errors
    /// As [`Self::effects`]; words that are not mapped are all named.
    pub async fn states(&mut self, window: Window, sink: FactSink<'_>) -> Result<u64> {
        match self.books() {
            Some((books, reader)) => books.states(reader, window, sink).await,
            None => Ok(0),
        }
    }

    /// Effects of all time whose row carries one of `ids`, or another id of the same payment.
    ///
    /// # Errors
    /// As [`Self::effects`].
    pub async fn effects_of(
        &mut self,
        scope: &Scope,
        ids: &BTreeSet<String>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        match self.books() {
            Some((books, reader)) => books.effects_of(reader, scope, ids, sink).await,
            None => Ok(0),
        }
    }

    /// Effects of all time whose row names one of these events.
    ///
    /// # Errors
    /// As [`Self::effects`].
    pub async fn effects_of_events(
        &mut self,
        scope: &Scope,
        event_ids: &BTreeSet<String>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        match self.books() {
            Some((books, reader)) => books.effects_of_events(reader, scope, event_ids, sink).await,
            None => Ok(0),
        }
    }

    /// Statuses of all time whose row carries one of `ids`, or another id of the same payment.
    ///
    /// # Errors
    /// As [`Self::states`].
    pub async fn states_of(
        &mut self,
        scope: &Scope,
        ids: &BTreeSet<String>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        match self.books() {
            Some((books, reader)) => books.states_of(reader, scope, ids, sink).await,
            None => Ok(0),
        }
    }

    /// Events received in `window`; answers how many rows there were.
    ///
    /// # Errors
    /// [`crate::config::Unusable`] when a row does not keep the contract or a status word is unknown; else when
    /// reading or the sink fails.
    pub async fn events(&mut self, window: Window, sink: FactSink<'_>) -> Result<u64> {
        match self.events_reader() {
            Some((inbox, reader)) => inbox.events(reader, window, sink).await,
            None => Ok(0),
        }
    }

    /// Which types each scope received in `window`, and when it last did.
    ///
    /// # Errors
    /// As [`Self::events`].
    pub async fn received(&mut self, window: Window, sink: ReceivedSink<'_>) -> Result<()> {
        match self.events_reader() {
            Some((inbox, reader)) => inbox.received(reader, window, sink).await,
            None => Ok(()),
        }
    }

    /// Events of all time with one of these ids.
    ///
    /// # Errors
    /// As [`Self::events`].
    pub async fn events_of(
        &mut self,
        scope: &Scope,
        event_ids: &BTreeSet<String>,
        sink: FactSink<'_>,
    ) -> Result<u64> {
        match self.events_reader() {
            Some((inbox, reader)) => inbox.events_of(reader, scope, event_ids, sink).await,
            None => Ok(0),
        }
    }

    /// Ends it, so that no transaction stays open.
    ///
    /// # Errors
    /// When a database does not answer.
    pub async fn end(self) -> Result<()> {
        for reader in [self.local_reader, self.inbox_reader].into_iter().flatten() {
            reader.end().await?;
        }
        Ok(())
    }
}
