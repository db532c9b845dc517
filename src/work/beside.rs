//! A booking beside what the worker does meanwhile.
//!
//! The one thing to get right: it holds the write lock, so it must not wait for its turn while the events that come next
//! are read; and it ends with whoever waits for it, so that nothing is booked by a worker that is gone.

use super::book::{Booking, End, Item, book};
use anyhow::{Context, Result};
use std::sync::Arc;
use tokio::task::JoinSet;

/// As [`book`], in a task of its own. Dropped before its end, nothing is booked.
///
/// # Errors
/// As [`book`].
pub(super) async fn book_beside(booking: Booking<'_>, items: &Arc<Vec<Item>>) -> Result<Vec<Option<End>>> {
    let Booking { store, now_us, attempts_max, park_max_us, pause, has_outbox } = booking;
    let (store, items) = (store.clone(), Arc::clone(items));
    let mut task = JoinSet::new();
    task.spawn(async move {
        let store = &store;
        let items: Vec<&Item> = items.iter().collect();
        book(Booking { store, now_us, attempts_max, park_max_us, pause, has_outbox }, &items).await
    });
    match task.join_next().await.context("a booking was not begun")? {
        Ok(booked) => booked,
        // A mistake of the program stays one.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(error).context("a booking was cut off"),
    }
}
