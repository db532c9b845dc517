//! The rows of a batch that move money or file events: read again, then through the door.

use super::asking::magnitude;
use super::carry_out::{Outcomes, RowOutcome, Work};
use crate::apply::message::Message;
use crate::apply::{Aliases, Answer, Effect, Request, apply_batch};
use crate::correction::Correction;
use crate::findings::Action;
use crate::record::{EffectKey, EffectKind, EventKey};
use crate::store::inbox::{self, ListedEvent, Replay};
use crate::store::ledger::{self, Entry};
use crate::store::outbox;
use crate::store::states;
use crate::store::work::wake;
use anyhow::{Result, bail};
use sqlx::{Any, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// What happens to a replay's events.
struct Filing {
    known: BTreeSet<EventKey>,
    listed: BTreeMap<EventKey, ListedEvent>,
}

/// Carries out every row but `set_state`.
pub(super) async fn book<'a>(
    tx: &mut Transaction<'_, Any>,
    work: Work<'_>,
    open: &[&'a Correction],
) -> Result<Outcomes<'a>> {
    let rows: Vec<&'a Correction> =
        open.iter().copied().filter(|row| row.action != Action::SetState).collect();
    let filing = read_filing(tx, work, &rows).await?;
    let mut outcomes = Outcomes::new();
    let mut doing = Vec::with_capacity(rows.len());
    let mut requests = effects(tx, work, &rows).await?;
    requests.extend(reversals(tx, work, &rows).await?);
    for row in rows {
        let is_filed = row.action == Action::ReplayEvent && work.inbox_is_ours;
        if is_filed && event_keys(row).iter().any(|key| !filing.can_file(key)) {
            outcomes.insert(&row.correction_id, RowOutcome::NotFetched);
        } else if let Some(request) = requests.remove(&*row.correction_id) {
            doing.push((row, request));
        } else if row.action == Action::ReplayEvent && row.effect.is_none() && filing.is_missing(row) {
            outcomes.insert(&row.correction_id, RowOutcome::Applied);
        } else {
            outcomes.insert(&row.correction_id, RowOutcome::StateMoved);
        }
    }
    let (doing, requests): (Vec<&Correction>, Vec<Request>) = doing.into_iter().unzip();
    let answers = apply_batch(tx, &requests).await?;
    land(tx, work, &requests, &answers).await?;
    for (row, answer) in doing.into_iter().zip(answers) {
        let outcome = match answer {
            Answer::Applied => RowOutcome::Applied,
            // It was not there when the run looked.
            Answer::AlreadyApplied => RowOutcome::StateMoved,
            Answer::Adopted { .. } => RowOutcome::Adopted,
            Answer::ConflictsWithApplied { .. } | Answer::Reversed { .. } => RowOutcome::Conflicts,
        };
        outcomes.insert(&row.correction_id, outcome);
    }
    if work.inbox_is_ours {
        file_events(tx, work, open, &outcomes, &filing).await?;
    }
    Ok(outcomes)
}

/// Files the events of replays that were carried out elsewhere, where the inbox is recon's own.
pub(super) async fn file(
    tx: &mut Transaction<'_, Any>,
    work: Work<'_>,
    rows: &[&Correction],
    outcomes: &Outcomes<'_>,
) -> Result<()> {
    if !work.inbox_is_ours {
        return Ok(());
    }
    let filing = read_filing(tx, work, rows).await?;
    file_events(tx, work, rows, outcomes, &filing).await
}

/// What follows from effects that are in the books now: events that waited for them are due, and the messages
/// that a live event would have sent are kept, unsent.
async fn land(
    tx: &mut Transaction<'_, Any>,
    work: Work<'_>,
    requests: &[Request],
    answers: &[Answer],
) -> Result<()> {
    let booked =
        || requests.iter().zip(answers).filter(|(request, _)| request.effect.corrects_entry_id.is_empty());
    let landed: Vec<&EffectKey> = booked()
        .filter(|(_, answer)| matches!(answer, Answer::Applied | Answer::Adopted { .. }))
        .map(|(request, _)| &request.key)
        .collect();
    wake(tx, &landed, work.now_us).await?;
    if !work.keeps_messages {
        return Ok(());
    }
    let suppressed = format!("applied by {}", work.run_id);
    let messages: Vec<Message> = booked()
        .filter(|(_, answer)| **answer == Answer::Applied)
        .map(|(request, _)| Message::of(request, &suppressed))
        .collect();
    outbox::insert(tx, &messages, work.now_us).await
}

pub(super) fn event_keys(row: &Correction) -> Vec<EventKey> {
    let key = |event_id: &String| EventKey { scope: row.scope.clone(), event_id: event_id.clone() };
    row.event_ids.iter().map(key).collect()
}

/// Requests for the rows that book an effect, by correction id.
async fn effects<'a>(
    tx: &mut Transaction<'_, Any>,
    work: Work<'_>,
    rows: &[&'a Correction],
) -> Result<BTreeMap<&'a str, Request>> {
    let books = |row: &&&Correction| matches!(row.action, Action::ReplayEvent | Action::ApplyEffect);
    let rows: Vec<(&'a Correction, EffectKind)> =
        rows.iter().filter(books).filter_map(|row| Some((*row, row.effect?))).collect();
    let roots: BTreeSet<&str> = rows.iter().map(|(row, _)| &*row.root_id).collect();
    let aliases = states::aliases(tx, &roots).await?;
    let mut requests = BTreeMap::new();
    for (row, kind) in rows {
        let root = (row.scope.clone(), row.root_id.clone());
        let mut ids: BTreeSet<String> = aliases.get(&root).cloned().unwrap_or_default();
        ids.insert(row.root_id.clone());
        ids.remove(&row.object_id);
        let aliases = Aliases { ids: ids.into_iter().collect(), booked_since_us: work.run_started_us };
        let effect = Effect { aliases, ..effect(work, row, kind, magnitude(row, kind)?) };
        let key = EffectKey { scope: row.scope.clone(), key: row.effect_key.clone() };
        let events = if row.action == Action::ReplayEvent { event_keys(row) } else { Vec::new() };
        requests.insert(&*row.correction_id, Request { events, key, effect });
    }
    Ok(requests)
}

fn effect(work: Work<'_>, row: &Correction, kind: EffectKind, amount_minor: i64) -> Effect {
    Effect {
        kind,
        object_id: row.object_id.clone(),
        aliases: Aliases::default(),
        amount_minor,
        currency: row.currency.clone(),
        occurred_at_us: row.occurred_at_us,
        applied_at_us: work.now_us,
        corrects_entry_id: String::new(),
        run_id: work.run_id.to_owned(),
        reason: row.reason.clone(),
    }
}

/// Requests for the rows that reverse an entry, by correction id. A row is left out when its entry is
/// not as planned, or no longer stands, or when the entry that was to be kept no longer stands.
async fn reversals<'a>(
    tx: &mut Transaction<'_, Any>,
    work: Work<'_>,
    rows: &[&'a Correction],
) -> Result<BTreeMap<&'a str, Request>> {
    let rows: Vec<&'a Correction> =
        rows.iter().copied().filter(|row| row.action == Action::ReverseEntry).collect();
    let ids: BTreeSet<&str> = rows.iter().flat_map(|row| &row.effect_ids).map(String::as_str).collect();
    let entries = ledger::entries_by_id(tx, &ids).await?;
    let entries: BTreeMap<&str, &Entry> = entries.iter().map(|entry| (&*entry.entry_id, entry)).collect();
    let correcting = ledger::entries_correcting(tx, &ids).await?;
    let undone: BTreeSet<&str> = correcting.iter().map(|entry| &*entry.corrects_entry_id).collect();
    let mut requests = BTreeMap::new();
    for row in rows {
        let ([kept, excess], Some(kind)) = (&*row.effect_ids, row.effect) else {
            bail!("the correction {} names no entry to keep and one to reverse", row.correction_id);
        };
        let standing = |entry_id: &String| {
            let entry = entries.get(&**entry_id).copied().filter(|_| !undone.contains(&**entry_id))?;
            (entry.key.scope == row.scope && entry.kind == kind && entry.amount_minor > 0).then_some(entry)
        };
        let (Some(_), Some(entry)) = (standing(kept), standing(excess)) else { continue };
        let movement = entry.amount_minor.checked_mul(-kind.sign());
        if kept == excess || movement != Some(row.amount_minor) || entry.currency != row.currency {
            continue;
        }
        let effect = Effect {
            object_id: entry.object_id.clone(),
            corrects_entry_id: entry.entry_id.clone(),
            occurred_at_us: entry.occurred_at_us,
            ..effect(work, row, kind, -entry.amount_minor)
        };
        let key = EffectKey { scope: row.scope.clone(), key: row.effect_key.clone() };
        requests.insert(&*row.correction_id, Request { events: Vec::new(), key, effect });
    }
    Ok(requests)
}

impl Filing {
    fn can_file(&self, key: &EventKey) -> bool {
        self.known.contains(key) || self.listed.contains_key(key)
    }

    fn is_missing(&self, row: &Correction) -> bool {
        event_keys(row).iter().any(|key| !self.known.contains(key))
    }
}

async fn read_filing(tx: &mut Transaction<'_, Any>, work: Work<'_>, rows: &[&Correction]) -> Result<Filing> {
    let replays = rows.iter().filter(|row| work.inbox_is_ours && row.action == Action::ReplayEvent);
    let keys: BTreeSet<EventKey> = replays.flat_map(|row| event_keys(row)).collect();
    let keys: Vec<&EventKey> = keys.iter().collect();
    let known = inbox::known(tx, &keys).await?;
    let absent: Vec<&EventKey> = keys.into_iter().filter(|key| !known.contains(*key)).collect();
    let listed = inbox::listed(tx, &absent).await?;
    Ok(Filing { known, listed })
}

/// Files the events of replays that were carried out, and marks those that the inbox had.
async fn file_events(
    tx: &mut Transaction<'_, Any>,
    work: Work<'_>,
    open: &[&Correction],
    outcomes: &Outcomes<'_>,
    filing: &Filing,
) -> Result<()> {
    let mut absent: BTreeMap<EventKey, (&'static str, String)> = BTreeMap::new();
    let mut present = BTreeSet::new();
    for row in open.iter().filter(|row| row.action == Action::ReplayEvent) {
        if !outcomes.get(&*row.correction_id).is_some_and(|outcome| outcome.is_carried_out()) {
            continue;
        }
        for key in event_keys(row) {
            if filing.known.contains(&key) {
                if row.effect.is_some() {
                    present.insert(key);
                }
            } else {
                // An event that stands for nothing in the books is left to whoever handles its type.
                let status = if row.effect.is_some() { "applied" } else { "received" };
                absent.insert(key, (status, format!("replayed by {}: {}", work.run_id, row.reason)));
            }
        }
    }
    let replay = |(key, (status, reason))| {
        let event = filing.listed.get(key)?;
        Some(Replay { key, event, status, reason })
    };
    let absent: Vec<(&EventKey, (&'static str, &String))> =
        absent.iter().map(|(key, (status, reason))| (key, (*status, reason))).collect();
    let replays: Vec<Replay<'_>> = absent
        .into_iter()
        .map(|(key, (status, reason))| (key, (status, &**reason)))
        .filter_map(replay)
        .collect();
    inbox::insert_replays(tx, &replays, work.now_us).await?;
    let present: Vec<&EventKey> = present.iter().collect();
    inbox::mark_applied(tx, &present, &format!("replayed by {}", work.run_id)).await
}
