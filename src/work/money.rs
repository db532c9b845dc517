//! The money of a batch: through the door, with what follows from it in the same transaction.

use super::book::{Booking, Item};
use super::decide::Deed;
use crate::apply::message::Message;
use crate::apply::{Aliases, Answer, Effect, Request, adopted_id, apply_batch};
use crate::record::{EffectKey, EffectKind};
use crate::store::ledger::{self, Entry};
use crate::store::{outbox, work};
use anyhow::Result;
use sqlx::{Any, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// The answers of each deed's requests, by its index.
pub(super) type Booked = BTreeMap<usize, Vec<Answer>>;

pub(super) async fn through_the_door(
    tx: &mut Transaction<'_, Any>,
    booking: Booking<'_>,
    items: &[&Item],
    deeds: &[(usize, &Deed)],
) -> Result<Booked> {
    let mut of: Vec<(usize, &str)> = Vec::new();
    let mut requests: Vec<Request> = Vec::new();
    for (index, deed) in deeds {
        for request in &deed.requests {
            of.push((*index, &deed.suppressed));
            requests.push(request.clone());
        }
    }
    let mut answers = apply_batch(tx, &requests).await?;
    // What is taken back may have been booked by this very batch.
    let mut undoing = Vec::new();
    for (index, request) in reversals(tx, booking, items, deeds).await? {
        let suppressed =
            deeds.iter().find(|(other, _)| *other == index).map_or("", |(_, deed)| &deed.suppressed);
        of.push((index, suppressed));
        undoing.push(request);
    }
    answers.extend(apply_batch(tx, &undoing).await?);
    requests.extend(undoing);
    let is_landed = |answer: &Answer| matches!(answer, Answer::Applied | Answer::Adopted { .. });
    let landed: BTreeSet<&EffectKey> = requests
        .iter()
        .zip(&answers)
        .filter(|(request, answer)| request.effect.kind == EffectKind::Credit && is_landed(answer))
        .map(|(request, _)| &request.key)
        .collect();
    let landed: Vec<&EffectKey> = landed.into_iter().collect();
    work::wake(tx, &landed, booking.now_us).await?;
    if booking.has_outbox {
        let messages: Vec<Message> = of
            .iter()
            .zip(requests.iter().zip(&answers))
            .filter(|(_, (_, answer))| **answer == Answer::Applied)
            .map(|((_, suppressed), (request, _))| Message::of(request, suppressed))
            .collect();
        outbox::insert(tx, &messages, booking.now_us).await?;
    }
    let mut booked = Booked::new();
    for ((index, _), answer) in of.into_iter().zip(answers) {
        booked.entry(index).or_default().push(answer);
    }
    Ok(booked)
}

/// Requests that undo what is booked of effects which the provider took back.
async fn reversals(
    tx: &mut Transaction<'_, Any>,
    booking: Booking<'_>,
    items: &[&Item],
    deeds: &[(usize, &Deed)],
) -> Result<Vec<(usize, Request)>> {
    let undone: Vec<(usize, &Deed, &EffectKey)> =
        deeds.iter().filter_map(|(index, deed)| Some((*index, *deed, deed.undoes.as_ref()?))).collect();
    if undone.is_empty() {
        return Ok(Vec::new());
    }
    let keys: BTreeSet<&EffectKey> = undone.iter().map(|(_, _, key)| *key).collect();
    let keys: Vec<&EffectKey> = keys.into_iter().collect();
    let held = ledger::entries_by_key(tx, &keys).await?;
    let adopted: BTreeSet<&str> = held.iter().filter_map(adopted_id).collect();
    let mut booked: BTreeMap<String, Entry> = ledger::entries_by_id(tx, &adopted)
        .await?
        .into_iter()
        .map(|entry| (entry.entry_id.clone(), entry))
        .collect();
    let mut standing: BTreeMap<EffectKey, Entry> = BTreeMap::new();
    for entry in held {
        let key = entry.key.clone();
        let entry = match adopted_id(&entry) {
            Some(id) => booked.remove(id),
            None => Some(entry),
        };
        standing.extend(entry.map(|entry| (key, entry)));
    }
    let ids: BTreeSet<&str> = standing.values().map(|entry| &*entry.entry_id).collect();
    let corrected = ledger::entries_correcting(tx, &ids).await?;
    let corrected: BTreeSet<&str> = corrected.iter().map(|entry| &*entry.corrects_entry_id).collect();
    let mut requests = Vec::new();
    for (index, deed, key) in undone {
        let Some(entry) = standing.get(key).filter(|entry| !corrected.contains(&*entry.entry_id)) else {
            continue;
        };
        let effect = Effect {
            kind: entry.kind,
            object_id: entry.object_id.clone(),
            aliases: Aliases::default(),
            amount_minor: -entry.amount_minor,
            currency: entry.currency.clone(),
            occurred_at_us: deed.created_us,
            applied_at_us: booking.now_us,
            corrects_entry_id: entry.entry_id.clone(),
            run_id: String::new(),
            reason: "the provider took it back".to_owned(),
        };
        let key = EffectKey::reverse(&deed.scope, &entry.entry_id);
        requests.push((index, Request { events: vec![items[index].claimed.key.clone()], key, effect }));
    }
    Ok(requests)
}
