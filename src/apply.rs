//! The one door through which business state is written: event key and effect in one transaction.
//!
//! Live events, replays and backfills all come through here with the same key for the same effect,
//! so it does not matter which of them is first or how often each is repeated. The one thing a reader
//! would get wrong: the *effect key* decides whether an effect is booked, not the event key. An event
//! may be marked as processed although its effect is missing; then the effect is booked.

pub mod message;
pub mod payment;
pub mod state;

use crate::record::{EffectKey, EffectKind, EventKey};
use crate::store::ledger::{self, Entry};
use anyhow::{Result, ensure};
use sqlx::{Any, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be booked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Kind; gives the direction.
    pub kind: EffectKind,
    /// The object that anchors it.
    pub object_id: String,
    /// Other ids under which somebody may have booked this very effect.
    pub aliases: Aliases,
    /// Magnitude in minor units; negative for a compensating entry.
    pub amount_minor: i64,
    /// Lower-case ISO code.
    pub currency: String,
    /// The provider's time of the effect, never the time of a replay; Unix µs.
    pub occurred_at_us: i64,
    /// Now, Unix µs.
    pub applied_at_us: i64,
    /// The entry that it compensates, empty for an effect of its own.
    pub corrects_entry_id: String,
    /// The run that books it, empty for live events.
    pub run_id: String,
    /// Why.
    pub reason: String,
}

/// Ids that name the payment as a whole. Several refunds of one payment may each be booked under the
/// payment's id, so an entry under an alias is only this effect when it was booked after somebody
/// last looked and found the effect missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases {
    /// The ids.
    pub ids: Vec<String>,
    /// Entries booked before this instant are known to be something else, Unix µs.
    pub booked_since_us: i64,
}

/// One effect on its way through the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The events that announce it; none where no event reaches it any more.
    pub events: Vec<EventKey>,
    /// Its key.
    pub key: EffectKey,
    /// The effect.
    pub effect: Effect,
}

/// What happened at the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Booked now.
    Applied,
    /// Booked before under the same key with the same amount and currency.
    AlreadyApplied,
    /// Booked before under another key: a zero entry now carries the canonical key, and names the
    /// entry it adopts. No amount changed.
    Adopted {
        /// The adopted entry.
        entry_id: String,
    },
    /// Booked before with another amount or currency. Nothing was written, not even the event key.
    ConflictsWithApplied {
        /// The entry in the way.
        entry_id: String,
    },
    /// Booked before and taken back since, so that nothing of it stands. Nothing was written, not even the event
    /// key: a key is booked once, and a person decides what is right.
    Reversed {
        /// The entry that was taken back.
        entry_id: String,
        /// The time of what took it back, as the provider has it, Unix µs.
        occurred_at_us: i64,
        /// When that was booked, Unix µs.
        applied_at_us: i64,
    },
}

impl Answer {
    /// Whether nothing was written although the effect does not stand as asked for.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::ConflictsWithApplied { .. } | Self::Reversed { .. })
    }
}

const ADOPTED: &str = "adopted ";

/// The entry that stands for another one's key, where it only records that key.
#[must_use]
pub fn adopted_entry(entry: &Entry) -> Option<&str> {
    entry.reason.strip_prefix(ADOPTED)
}

/// The id of the entry that holds an effect: readable, and the same whoever books it.
#[must_use]
pub fn entry_id(key: &EffectKey) -> String {
    format!("{}/{}", key.scope, key.key)
}

/// The entry that an entry without an amount adopts.
#[must_use]
pub fn adopted_id(entry: &Entry) -> Option<&str> {
    entry.reason.strip_prefix(ADOPTED)
}

/// Books one effect once. The caller commits.
///
/// # Errors
/// When the store cannot be read or written; the caller must roll back.
pub async fn apply_once(
    tx: &mut Transaction<'_, Any>,
    events: &[EventKey],
    key: &EffectKey,
    effect: &Effect,
) -> Result<Answer> {
    let request = Request { events: events.to_vec(), key: key.clone(), effect: effect.clone() };
    let mut answers = apply_batch(tx, std::slice::from_ref(&request)).await?;
    ensure!(answers.len() == 1, "one request, {} answers", answers.len());
    Ok(answers.remove(0))
}

/// Books many effects with the meaning of [`apply_once`] for each in turn. The caller commits.
///
/// # Errors
/// As [`apply_once`]; then nothing of the batch may be committed.
///
/// # Panics
/// When a request has no answer: a mistake of the program.
pub async fn apply_batch(tx: &mut Transaction<'_, Any>, requests: &[Request]) -> Result<Vec<Answer>> {
    let mut answers: BTreeMap<usize, Answer> = BTreeMap::new();
    let mut waiting: Vec<usize> = (0..requests.len()).collect();
    while !waiting.is_empty() {
        // A round has each key once, in key order: writers that meet lock in the same order.
        let mut round: BTreeMap<&EffectKey, usize> = BTreeMap::new();
        let mut repeated = Vec::new();
        for index in waiting {
            let key = &requests[index].key;
            if round.contains_key(key) { repeated.push(index) } else { round.extend([(key, index)]) }
        }
        let indexes: Vec<usize> = round.into_values().collect();
        let batch: Vec<&Request> = indexes.iter().map(|index| &requests[*index]).collect();
        let round_answers = apply_round(tx, &batch).await?;
        record_events(tx, &batch, &round_answers).await?;
        answers.extend(indexes.into_iter().zip(round_answers));
        waiting = repeated;
    }
    assert!(answers.len() == requests.len(), "{} answers, {} requests", answers.len(), requests.len());
    Ok(answers.into_values().collect())
}

/// Requests with distinct keys.
async fn apply_round(tx: &mut Transaction<'_, Any>, batch: &[&Request]) -> Result<Vec<Answer>> {
    let by_object = entries_of_objects(tx, batch).await?;
    let mut answers: Vec<Option<Answer>> = Vec::with_capacity(batch.len());
    let mut entries = Vec::new();
    for request in batch {
        match booked_elsewhere(request, &by_object) {
            Elsewhere::Nowhere => {
                answers.push(Some(Answer::Applied));
                entries.push(new_entry(request));
            }
            Elsewhere::Same(found) => {
                answers.push(Some(Answer::Adopted { entry_id: found.to_owned() }));
                entries.push(adoption(request, found));
            }
            Elsewhere::Differs(found) => {
                answers.push(Some(Answer::ConflictsWithApplied { entry_id: found.to_owned() }));
            }
            Elsewhere::UnderOurKey => answers.push(None),
        }
    }
    let inserted = ledger::insert_entries(tx, &entries).await?;
    for (request, answer) in batch.iter().zip(&mut answers) {
        let wrote = matches!(answer, Some(Answer::Applied | Answer::Adopted { .. }));
        if wrote && !inserted.contains(&entry_id(&request.key)) {
            *answer = None;
        }
    }
    compare_with_held(tx, batch, answers, &by_object).await
}

/// The entries on every id that a batch's effects may be booked under.
async fn entries_of_objects(
    tx: &mut Transaction<'_, Any>,
    batch: &[&Request],
) -> Result<BTreeMap<String, Vec<Entry>>> {
    let mut objects = BTreeSet::new();
    for request in batch.iter().filter(|request| request.effect.corrects_entry_id.is_empty()) {
        objects.insert(&*request.effect.object_id);
        objects.extend(request.effect.aliases.ids.iter().map(String::as_str));
    }
    let mut by_object: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    for entry in ledger::entries_by_object(tx, &objects).await? {
        by_object.entry(entry.object_id.clone()).or_default().push(entry);
    }
    Ok(by_object)
}

/// Where an effect stands in the ledger by what it is, not by its key.
enum Elsewhere<'a> {
    Nowhere,
    UnderOurKey,
    Same(&'a str),
    Differs(&'a str),
}

/// What may hold a request's effect, by what it is.
fn entries_like<'a>(request: &Request, by_object: &'a BTreeMap<String, Vec<Entry>>) -> Vec<&'a Entry> {
    let effect = &request.effect;
    let on = |object_id: &String| by_object.get(object_id).into_iter().flatten();
    let exact = on(&effect.object_id);
    let by_alias = effect
        .aliases
        .ids
        .iter()
        .filter(|alias| **alias != effect.object_id)
        .flat_map(on)
        .filter(|entry| entry.applied_at_us >= effect.aliases.booked_since_us);
    let of_kind = |entry: &&Entry| entry.key.scope == request.key.scope && entry.kind == effect.kind;
    exact.chain(by_alias).filter(of_kind).collect()
}

/// What entries come to, by currency; no zeros.
fn net<'a>(entries: &[&'a Entry]) -> BTreeMap<&'a str, i128> {
    let mut net: BTreeMap<&str, i128> = BTreeMap::new();
    for entry in entries {
        *net.entry(&entry.currency).or_default() += i128::from(entry.amount_minor);
    }
    net.retain(|_, amount| *amount != 0);
    net
}

fn booked_elsewhere<'a>(request: &Request, by_object: &'a BTreeMap<String, Vec<Entry>>) -> Elsewhere<'a> {
    let effect = &request.effect;
    if !effect.corrects_entry_id.is_empty() {
        return Elsewhere::Nowhere;
    }
    let entries = entries_like(request, by_object);
    if entries.iter().any(|entry| entry.key == request.key) {
        return Elsewhere::UnderOurKey;
    }
    let net = net(&entries);
    let reversed: BTreeSet<&str> = entries.iter().map(|entry| &*entry.corrects_entry_id).collect();
    let standing = |entry: &&&Entry| {
        entry.amount_minor != 0
            && entry.corrects_entry_id.is_empty()
            && !reversed.contains(&*entry.entry_id)
            && net.contains_key(&*entry.currency)
    };
    let Some(found) = entries.iter().find(standing).or(entries.first()) else { return Elsewhere::Nowhere };
    if net.is_empty() {
        return Elsewhere::Nowhere;
    }
    let ours = BTreeMap::from([(&*effect.currency, i128::from(effect.amount_minor))]);
    if net == ours { Elsewhere::Same(&found.entry_id) } else { Elsewhere::Differs(&found.entry_id) }
}

fn new_entry(request: &Request) -> Entry {
    let effect = &request.effect;
    Entry {
        entry_id: entry_id(&request.key),
        key: request.key.clone(),
        object_id: effect.object_id.clone(),
        kind: effect.kind,
        amount_minor: effect.amount_minor,
        currency: effect.currency.clone(),
        occurred_at_us: effect.occurred_at_us,
        applied_at_us: effect.applied_at_us,
        event_id: request.events.first().map(|event| event.event_id.clone()).unwrap_or_default(),
        corrects_entry_id: effect.corrects_entry_id.clone(),
        run_id: effect.run_id.clone(),
        reason: effect.reason.clone(),
    }
}

/// The ledger is insert only, so a key is recorded beside the adopted entry, with no amount.
fn adoption(request: &Request, adopted: &str) -> Entry {
    Entry { amount_minor: 0, reason: format!("{ADOPTED}{adopted}"), ..new_entry(request) }
}

/// Answers the requests whose key was there before: the same effect, or another one.
async fn compare_with_held(
    tx: &mut Transaction<'_, Any>,
    batch: &[&Request],
    answers: Vec<Option<Answer>>,
    by_object: &BTreeMap<String, Vec<Entry>>,
) -> Result<Vec<Answer>> {
    let open: Vec<&Request> = batch
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| answer.is_none())
        .map(|(request, _)| *request)
        .collect();
    let keys: Vec<&EffectKey> = open.iter().map(|request| &request.key).collect();
    let held = ledger::entries_by_key(tx, &keys).await?;
    let adopted_ids: BTreeSet<&str> = held.iter().filter_map(adopted_id).collect();
    let adopted = ledger::entries_by_id(tx, &adopted_ids).await?;
    let adopted: BTreeMap<&str, &Entry> = adopted.iter().map(|entry| (&*entry.entry_id, entry)).collect();
    let ids: BTreeSet<&str> =
        held.iter().map(|entry| &*entry.entry_id).chain(adopted.keys().copied()).collect();
    let correcting = ledger::entries_correcting(tx, &ids).await?;
    let correcting: BTreeMap<&str, &Entry> =
        correcting.iter().map(|entry| (&*entry.corrects_entry_id, entry)).collect();
    let held: BTreeMap<&EffectKey, &Entry> = held.iter().map(|entry| (&entry.key, entry)).collect();
    let mut decided = Vec::with_capacity(batch.len());
    for (request, answer) in batch.iter().zip(answers) {
        let answer = match (answer, held.get(&request.key)) {
            (Some(answer), _) => answer,
            (None, Some(entry)) => {
                let booked = adopted_id(entry).and_then(|id| adopted.get(id)).unwrap_or(entry);
                let reversal = correcting.get(&*booked.entry_id).filter(|_| {
                    let ours = BTreeMap::from([(
                        &*request.effect.currency,
                        i128::from(request.effect.amount_minor),
                    )]);
                    // It was one of two, and the other one stands.
                    net(&entries_like(request, by_object)) != ours
                });
                compare(&request.effect, booked, reversal.copied())
            }
            // The entry's id is taken by an entry with another key: not ours to judge or to write over.
            (None, None) => Answer::ConflictsWithApplied { entry_id: entry_id(&request.key) },
        };
        decided.push(answer);
    }
    Ok(decided)
}

fn compare(effect: &Effect, booked: &Entry, reversal: Option<&Entry>) -> Answer {
    let same = booked.kind == effect.kind
        && booked.amount_minor == effect.amount_minor
        && booked.currency == effect.currency;
    match reversal {
        Some(reversal) if same => Answer::Reversed {
            entry_id: booked.entry_id.clone(),
            occurred_at_us: reversal.occurred_at_us,
            applied_at_us: reversal.applied_at_us,
        },
        None if same => Answer::AlreadyApplied,
        _ => Answer::ConflictsWithApplied { entry_id: booked.entry_id.clone() },
    }
}

/// Records the event keys of everything that is booked now; a conflict leaves none behind.
async fn record_events(tx: &mut Transaction<'_, Any>, batch: &[&Request], answers: &[Answer]) -> Result<()> {
    let mut events: BTreeMap<&EventKey, &str> = BTreeMap::new();
    let mut applied_at_us = 0;
    for (request, answer) in batch.iter().zip(answers) {
        if !answer.is_refusal() {
            events.extend(request.events.iter().map(|event| (event, &*request.effect.run_id)));
            applied_at_us = request.effect.applied_at_us;
        }
    }
    let events: Vec<(&EventKey, &str)> = events.into_iter().collect();
    ledger::insert_applied_events(tx, &events, applied_at_us).await
}
