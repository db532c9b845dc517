//! Single objects by id. What the provider does not know is told apart from what it would not say.

use super::client::Client;
use super::fetch_error::FetchError;
use super::list_page::{is_askable, object_path, read_record};
use super::{Cancel, Stream};
use crate::record::{SECOND_US, Scope};
use crate::store::{PageRecord, Store};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::JoinSet;

/// Requests under way at once, and objects written in one transaction.
const REQUESTS_MAX: usize = 64;
const WRITE_RECORDS: usize = 500;

/// What became of each id that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ById {
    /// Held in the store now.
    pub found: BTreeSet<String>,
    /// Asked for, on this account, and not known to the provider (or deleted there).
    pub unknown: BTreeSet<String>,
    /// Not answered, with a short cause: `locked`, `budget`, `no_permission`, `interrupted`, `rate_limited`, `unaskable_id`.
    /// Nothing may be concluded about these.
    pub unanswered: BTreeMap<String, &'static str>,
}

enum Answer {
    Found(PageRecord),
    Unknown,
    Unanswered(&'static str),
}

/// Fetches objects of a stream by id, under their own endpoint's limit (`<stream>_by_id`), into the store.
///
/// # Errors
/// When the provider cannot be talked to at all, or the store cannot be written. What came before is kept.
pub async fn fetch_by_id(
    store: &Store,
    client: &Client,
    scope: &Scope,
    stream: &Stream,
    ids: &BTreeSet<String>,
    cancel: &Cancel,
) -> Result<ById> {
    let mut result = ById::default();
    let mut records = Vec::new();
    let mut asked = JoinSet::new();
    let mut ids = ids.iter();
    let mut failure: Option<anyhow::Error> = None;
    loop {
        while failure.is_none() && asked.len() < REQUESTS_MAX {
            let Some(id) = ids.next() else { break };
            if !is_askable(id) {
                result.unanswered.insert(id.clone(), "unaskable_id");
            } else if cancel.is_cancelled() {
                result.unanswered.insert(id.clone(), "interrupted");
            } else {
                asked.spawn(ask(client.clone(), *stream, scope.clone(), id.clone()));
            }
        }
        let Some(done) = asked.join_next().await else { break };
        match done.context("a look-up's task ended early")? {
            (id, Ok(Answer::Found(record))) => {
                result.found.insert(id);
                records.push(record);
            }
            (id, Ok(Answer::Unknown)) => {
                result.unknown.insert(id);
            }
            (id, Ok(Answer::Unanswered(cause))) => {
                result.unanswered.insert(id, cause);
            }
            (_, Err(error)) => {
                failure.get_or_insert(error.into());
            }
        }
        if records.len() >= WRITE_RECORDS {
            write(store, client, scope, stream, &mut records).await?;
        }
    }
    write(store, client, scope, stream, &mut records).await?;
    failure.map_or(Ok(result), Err)
}

async fn write(
    store: &Store,
    client: &Client,
    scope: &Scope,
    stream: &Stream,
    records: &mut Vec<PageRecord>,
) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let mut batch = std::mem::take(records);
    batch.sort_by(|a, b| a.record_id.cmp(&b.record_id));
    batch.dedup_by(|a, b| a.record_id == b.record_id);
    store.write_records(scope, stream.name, &batch, client.timing().now_us()).await
}

async fn ask(
    client: Client,
    stream: Stream,
    scope: Scope,
    id: String,
) -> (String, Result<Answer, FetchError>) {
    let path = object_path(&stream, &id);
    let endpoint = format!("{}_by_id", stream.name);
    let answer = match client.get_object(&endpoint, &path, &scope.account).await {
        Ok(body) if is_deleted(&body) => Ok(Answer::Unknown),
        Ok(body) => read_record(&body)
            .map(|record| {
                let created_us = record.created.saturating_mul(SECOND_US);
                Answer::Found(PageRecord { record_id: record.id, created_us, body: record.body })
            })
            .map_err(|problem| FetchError::Shape { what: format!("fetch {endpoint}: GET {path}"), problem }),
        Err(FetchError::NotFound { .. }) => Ok(Answer::Unknown),
        Err(FetchError::Locked { .. }) => Ok(Answer::Unanswered("locked")),
        Err(FetchError::Budget { .. }) => Ok(Answer::Unanswered("budget")),
        Err(FetchError::Forbidden { .. }) => Ok(Answer::Unanswered("no_permission")),
        Err(FetchError::RateLimited { .. }) => Ok(Answer::Unanswered("rate_limited")),
        Err(error) => Err(error),
    };
    (id, answer)
}

/// Stripe answers for some deleted objects with `{"id": …, "deleted": true}`.
fn is_deleted(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Wire {
        #[serde(default)]
        deleted: bool,
    }
    serde_json::from_slice::<Wire>(body).is_ok_and(|wire| wire.deleted)
}
