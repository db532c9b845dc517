//! A window of the provider's lists, read into the store with the proof of what was read.
//!
//! Every (account, stream) is one task (`stream_pager.rs`). The one thing to get right: when one fails, the
//! others are stopped, but what they have read is written first.

use super::Stream;
use super::cancel::{Cancel, CancelHandle};
use super::client::Client;
use super::progress::Progress;
use super::stream_pager::StreamPager;
use crate::config::ProviderSettings;
use crate::record::{Coverage, Note, Window};
use crate::store::Store;
use anyhow::{Context, Result};
use std::sync::Arc;
use tokio::task::JoinSet;

/// What the pager needs to know of the run.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// This run.
    pub run_id: String,
    /// The killed run of the same window whose slices this one takes over.
    pub resume_of: Option<String>,
    /// The accounts to read; `""` is the platform account.
    pub accounts: Vec<String>,
    /// Now, Unix µs, as the run understands it.
    pub now_us: i64,
    /// Raised to stop cleanly.
    pub cancel: Cancel,
    /// Where progress is shown.
    pub progress: Arc<Progress>,
}

/// What paging brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paged {
    /// One row per scope, stream and range, sorted.
    pub coverage: Vec<Coverage>,
    /// Records that a person should look at, such as one created in the future.
    pub notes: Vec<Note>,
}

/// Reads `window` of every stream of every account into the store.
///
/// # Errors
/// When the provider cannot be talked to at all (see [`super::FetchError`]) or the store cannot be written. What was
/// read until then is kept, and a run that resumes this one goes on from there.
pub async fn page(
    store: &Store,
    client: &Client,
    provider: &ProviderSettings,
    streams: &[Stream],
    window: Window,
    run: &RunContext,
) -> Result<Paged> {
    if let Some(earlier) = &run.resume_of {
        store.take_over_slices(&run.run_id, earlier).await?;
    }
    let (stop, stopped) = Cancel::new();
    let write_turn = Arc::new(tokio::sync::Mutex::new(()));
    let mut tasks = JoinSet::new();
    for account in &run.accounts {
        for stream in streams {
            let pager = StreamPager::new(
                (store.clone(), client.clone()),
                (provider.scope(account), provider.requests_per_second),
                *stream,
                window,
                run.clone(),
                (stopped.clone(), Arc::clone(&write_turn)),
            );
            tasks.spawn(pager.run());
        }
    }
    gather(&mut tasks, &stop).await
}

/// Collects every task. The first failure stops the others, which write what they have before they end.
async fn gather(tasks: &mut JoinSet<Result<Paged>>, stop: &CancelHandle) -> Result<Paged> {
    let mut all = Paged::default();
    let mut failure = None;
    while let Some(done) = tasks.join_next().await {
        match done.context("a paging task ended early").and_then(|result| result) {
            Ok(paged) => {
                all.coverage.extend(paged.coverage);
                all.notes.extend(paged.notes);
            }
            Err(error) => {
                stop.cancel();
                failure.get_or_insert(error);
            }
        }
    }
    all.coverage.sort();
    all.notes.sort();
    failure.map_or(Ok(all), Err)
}
