//! Single objects by id, and what hangs on one charge or payment intent. What the provider does not know is told apart from
//! what it would not say.

use super::client::Client;
use super::fetch_error::FetchError;
use super::list_page::{Record, is_askable, object_path, of_object_path, read_page, read_record};
use super::{Cancel, Stream};
use crate::record::{SECOND_US, Scope};
use crate::store::{PageRecord, Store};
use anyhow::{Context, Result};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::task::JoinSet;

/// Requests under way at once, and objects written in one transaction.
const REQUESTS_MAX: usize = 64;
const WRITE_RECORDS: usize = 500;
/// So many failures in a row that concern everybody, and nobody else is asked for.
const FAILURES_IN_A_ROW: usize = 3;
/// How often an id is asked for that others write meanwhile.
const ROUNDS_MAX: usize = 3;

/// What became of each id that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ById {
    /// Held in the store now.
    pub found: BTreeSet<String>,
    /// SHA-256 of what was answered for each of them that was asked for by id.
    pub prints: BTreeMap<String, [u8; 32]>,
    /// Asked for, on this account, and not known to the provider (or deleted there).
    pub unknown: BTreeSet<String>,
    /// Not answered, with a short cause: `locked`, `budget`, `no_permission`, `interrupted`, `rate_limited`, `unaskable_id`,
    /// `other_object`, `not_found` (of a list), `no_progress`, `changed_meanwhile` (others wrote it each time).
    /// Nothing may be concluded about these.
    pub unanswered: BTreeMap<String, &'static str>,
    /// Of [`Failing::Alone`]: asked for in vain, with the failure.
    pub failed: BTreeMap<String, FetchError>,
}

/// What a failure means for the other ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// The first ends them all, as the error of the whole.
    Together,
    /// It is one id's own, kept in [`ById::failed`], unless several in a row say that the provider is not to be had:
    /// then the rest is not asked for (`not_asked`).
    Alone,
}

/// What an id is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// The object itself.
    Object,
    /// The stream's objects that name it in this field.
    Of(&'static str),
}

enum Answer {
    Found(Vec<PageRecord>),
    Unknown,
    Unanswered(&'static str),
}

/// Who is asked for a stream's objects, and where they are kept.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    /// Holds what was answered.
    pub store: &'a Store,
    /// Who asks, under the objects' own endpoint's limit (`<stream>_by_id`).
    pub client: &'a Client,
    /// The account that is asked.
    pub scope: &'a Scope,
    /// The kind of object.
    pub stream: &'a Stream,
    /// Ends the asking. What has come is kept.
    pub cancel: &'a Cancel,
}

impl Lookup<'_> {
    /// Fetches objects by their ids.
    ///
    /// # Errors
    /// When the store cannot be written, and as `failing` says. What came before is kept.
    pub async fn by_id(self, ids: &BTreeSet<String>, failing: Failing) -> Result<ById> {
        ask_all(self, ids, Question::Object, failing).await
    }

    /// Fetches the stream's objects that name one of `ids` in the field `filter`, whenever they were made. `found`
    /// has their ids, the rest those of `ids`.
    ///
    /// Source: the parameters `charge` and `payment_intent` of <https://docs.stripe.com/api/refunds/list> and
    /// <https://docs.stripe.com/api/disputes/list>, `payment_intent` of <https://docs.stripe.com/api/charges/list>.
    ///
    /// # Errors
    /// As [`Lookup::by_id`].
    pub async fn that_name(
        self,
        filter: &'static str,
        ids: &BTreeSet<String>,
        failing: Failing,
    ) -> Result<ById> {
        ask_all(self, ids, Question::Of(filter), failing).await
    }
}

/// Asks for all of them. What others wrote while it was asked for is asked for again, and in the end is not answered
/// for.
async fn ask_all(
    lookup: Lookup<'_>,
    ids: &BTreeSet<String>,
    question: Question,
    failing: Failing,
) -> Result<ById> {
    let mut result = ById::default();
    let mut moved = ids.clone();
    for _ in 0..ROUNDS_MAX {
        let mut round = Round { lookup, question, failing, result, moved: BTreeSet::new() };
        round.ask_for(&moved).await?;
        (result, moved) = (round.result, round.moved);
        if moved.is_empty() {
            break;
        }
    }
    result.unanswered.extend(moved.into_iter().map(|id| (id, "changed_meanwhile")));
    Ok(result)
}

/// One answer for each id.
struct Round<'a> {
    lookup: Lookup<'a>,
    question: Question,
    failing: Failing,
    result: ById,
    /// Ids of which another answer was written while they were asked for.
    moved: BTreeSet<String>,
}

impl Round<'_> {
    async fn ask_for(&mut self, ids: &BTreeSet<String>) -> Result<()> {
        let Lookup { store, client, scope, stream, cancel } = self.lookup;
        let mut records = Vec::new();
        let mut asked = JoinSet::new();
        let mut under_way: BTreeSet<String> = BTreeSet::new();
        let mut left: VecDeque<&String> = ids.iter().collect();
        let mut marks = BTreeMap::new();
        let mut marked = 0;
        let mut failure: Option<anyhow::Error> = None;
        let mut in_a_row = 0;
        loop {
            while failure.is_none() && asked.len() < REQUESTS_MAX {
                let Some(id) = left.pop_front() else { break };
                if !is_askable(id) {
                    self.result.unanswered.insert(id.clone(), "unaskable_id");
                } else if cancel.is_cancelled() {
                    self.result.unanswered.insert(id.clone(), "interrupted");
                } else if in_a_row >= FAILURES_IN_A_ROW && self.failing == Failing::Alone {
                    self.result.unanswered.insert(id.clone(), "not_asked");
                } else {
                    if marked == 0 && self.question == Question::Object {
                        let next = [id].into_iter().chain(left.iter().copied()).take(WRITE_RECORDS);
                        let next: BTreeSet<String> = next.cloned().collect();
                        marked = next.len();
                        marks.extend(store.marks(scope, &next).await?);
                    }
                    marked = marked.saturating_sub(1);
                    under_way.insert(id.clone());
                    asked.spawn(ask(client.clone(), *stream, scope.clone(), id.clone(), self.question));
                }
            }
            let done = tokio::select! {
                done = asked.join_next() => done,
                () = cancel.cancelled() => {
                    // What was asked is not waited for. What has come is kept.
                    asked = JoinSet::new();
                    let ids = std::mem::take(&mut under_way);
                    self.result.unanswered.extend(ids.into_iter().map(|id| (id, "interrupted")));
                    continue;
                }
            };
            let Some(done) = done else { break };
            let (id, answer) = done.context("a look-up's task ended early")?;
            under_way.remove(&id);
            in_a_row = if concerns_all(&answer) { in_a_row + 1 } else { 0 };
            if let Some(error) = self.take(id, answer, &mut records) {
                failure.get_or_insert(error.into());
            }
            if records.len() >= WRITE_RECORDS {
                self.write(std::mem::take(&mut records), &marks).await?;
            }
        }
        self.write(records, &marks).await?;
        failure.map_or(Ok(()), Err)
    }

    /// Sorts an answer in. An error ends the asking.
    fn take(
        &mut self,
        id: String,
        answer: Result<Answer, FetchError>,
        records: &mut Vec<PageRecord>,
    ) -> Option<FetchError> {
        match answer {
            Ok(Answer::Found(found)) => records.extend(found),
            Ok(Answer::Unknown) => {
                self.result.unknown.insert(id);
            }
            Ok(Answer::Unanswered(cause)) => {
                self.result.unanswered.insert(id, cause);
            }
            Err(error) if self.failing == Failing::Alone => {
                self.result.failed.insert(id, error);
            }
            Err(error) => return Some(error),
        }
        None
    }

    async fn write(&mut self, mut records: Vec<PageRecord>, marks: &BTreeMap<String, i64>) -> Result<()> {
        let Lookup { store, scope, stream, .. } = self.lookup;
        if records.is_empty() {
            return Ok(());
        }
        records.sort_by(|a, b| a.record_id.cmp(&b.record_id));
        records.dedup_by(|a, b| a.record_id == b.record_id);
        let ids: BTreeSet<String> = records.iter().map(|record| record.record_id.clone()).collect();
        let written = match self.question {
            Question::Object => {
                let prints: BTreeMap<String, [u8; 32]> = records
                    .iter()
                    .map(|record| (record.record_id.clone(), Sha256::digest(&record.body).into()))
                    .collect();
                let written = store.write_unmoved(scope, stream.name, records, marks).await?;
                self.result.prints.extend(prints.into_iter().filter(|(id, _)| written.contains(id)));
                written
            }
            Question::Of(_) => {
                store.write_records(scope, stream.name, &records).await?;
                ids.clone()
            }
        };
        self.moved.extend(ids.difference(&written).cloned());
        self.result.found.extend(written);
        Ok(())
    }
}

/// Whether an answer says that nobody is to be had.
fn concerns_all(answer: &Result<Answer, FetchError>) -> bool {
    match answer {
        Ok(Answer::Unanswered(cause)) => *cause == "rate_limited",
        Ok(_) => false,
        Err(error) => error.concerns_all(),
    }
}

async fn ask(
    client: Client,
    stream: Stream,
    scope: Scope,
    id: String,
    question: Question,
) -> (String, Result<Answer, FetchError>) {
    let found = match question {
        Question::Object => object(&client, &stream, &scope, &id).await,
        Question::Of(filter) => of_object(&client, &stream, &scope, filter, &id).await,
    };
    let answer = match (found, question) {
        (Err(FetchError::NotFound { .. }), Question::Object) => return (id, Ok(Answer::Unknown)),
        // A list of what hangs on an object that the provider does not know proves nothing of what hangs on it.
        (Err(FetchError::NotFound { .. }), Question::Of(_)) => {
            return (id, Ok(Answer::Unanswered("not_found")));
        }
        (found, _) => found,
    };
    let answer = match answer {
        Err(FetchError::Locked { .. }) => Ok(Answer::Unanswered("locked")),
        Err(FetchError::Budget { .. }) => Ok(Answer::Unanswered("budget")),
        Err(FetchError::Forbidden { .. }) => Ok(Answer::Unanswered("no_permission")),
        Err(FetchError::RateLimited { .. }) => Ok(Answer::Unanswered("rate_limited")),
        other => other,
    };
    (id, answer)
}

async fn object(client: &Client, stream: &Stream, scope: &Scope, id: &str) -> Result<Answer, FetchError> {
    let path = object_path(stream, id);
    let endpoint = format!("{}_by_id", stream.name);
    let (body, asked_at_us) = client.get_object(&endpoint, &path, &scope.account).await?;
    if is_deleted(&body) {
        return Ok(Answer::Unknown);
    }
    match read_record(&body) {
        // An answer about something else says nothing of what was asked for, and is not kept.
        Ok(record) if record.id != id => Ok(Answer::Unanswered("other_object")),
        Ok(record) => Ok(Answer::Found(vec![stored(record, asked_at_us)])),
        Err(problem) => Err(FetchError::Shape { what: format!("fetch {endpoint}: GET {path}"), problem }),
    }
}

/// The list of an object's charges, refunds or disputes, to its end: there are few, and none comes before
/// others that the list has shown. A page that says that there is more and shows nothing new is no answer.
async fn of_object(
    client: &Client,
    stream: &Stream,
    scope: &Scope,
    filter: &str,
    id: &str,
) -> Result<Answer, FetchError> {
    let mut found: Vec<PageRecord> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    loop {
        let path = of_object_path(stream, filter, id, found.last().map(|record| record.record_id.as_str()));
        let (body, asked_at_us) = client.get_at(stream.name, &path, &scope.account).await?;
        let shape =
            |problem| FetchError::Shape { what: format!("list {}: GET {path}", stream.name), problem };
        let (records, has_more) = read_page(&body).map_err(shape)?;
        let known = seen.len();
        seen.extend(records.iter().map(|record| record.id.clone()));
        let is_stuck = seen.len() == known;
        found.extend(records.into_iter().map(|record| stored(record, asked_at_us)));
        if !has_more {
            return Ok(Answer::Found(found));
        }
        if is_stuck {
            return Ok(Answer::Unanswered("no_progress"));
        }
    }
}

fn stored(record: Record, asked_at_us: i64) -> PageRecord {
    let created_us = record.created.saturating_mul(SECOND_US);
    PageRecord { record_id: record.id, created_us, asked_at_us, body: record.body }
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
