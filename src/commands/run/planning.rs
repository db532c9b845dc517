//! Step four: the findings' corrections, but for what was corrected before and undone since.
//!
//! The one thing to get right: an effect key books once, for ever. Where its entry is in the ledger and was
//! undone by another one, somebody meant that; a plan that asked for it again could never be carried out.

use super::Job;
use crate::apply::adopted_entry;
use crate::config::Side;
use crate::correction::{Correction, PlanContext, plan};
use crate::findings::{Action, Finding, Kind};
use crate::record::EffectKey;
use crate::store::ledger::{self, Entry};
use crate::store::plans;
use anyhow::{Context, Result};
use sqlx::AnyConnection;
use std::collections::{BTreeMap, BTreeSet};

/// Plans, and keeps the plan, so that a plan that comes back from review can be compared with it. A finding
/// whose corrections were all carried out before and undone since is left to a person, and says so; of `accepted` ones,
/// which somebody lives with, nothing is planned.
pub(super) async fn planned(
    job: &Job<'_>,
    findings: &mut [Finding],
    accepted: &BTreeSet<String>,
) -> Result<Vec<Correction>> {
    let named: BTreeSet<&str> = findings
        .iter()
        .filter(|finding| finding.kind == Kind::DuplicateEffect)
        .flat_map(|finding| finding.effect_ids.iter().map(String::as_str))
        .collect();
    let mut tx = job.store.begin_write().await?;
    let entry_amounts = ledger::entry_amounts(&mut tx, &named).await?;
    let context = PlanContext {
        run_id: &job.run_id,
        auto: &job.settings.corrections.auto,
        entry_amounts: &entry_amounts,
    };
    let mut corrections = plan(findings, context);
    corrections.retain(|row| !accepted.contains(&row.finding_id));
    if job.settings.local.side == Side::Store {
        let undone = undone(&mut tx, &corrections).await?;
        leave_out(&mut corrections, findings, &undone);
    }
    plans::save_plan(&mut tx, &job.run_id, &corrections).await?;
    tx.commit().await.context("keep the plan")?;
    Ok(corrections)
}

fn key_of(correction: &Correction) -> EffectKey {
    EffectKey { scope: correction.scope.clone(), key: correction.effect_key.clone() }
}

/// Entries that hold a correction's key and were undone, by key.
async fn undone(
    connection: &mut AnyConnection,
    corrections: &[Correction],
) -> Result<BTreeMap<EffectKey, Entry>> {
    let keys: Vec<EffectKey> =
        corrections.iter().filter(|row| row.action != Action::SetState).map(key_of).collect();
    let held = ledger::entries_by_key(connection, &keys.iter().collect::<Vec<_>>()).await?;
    let stands_as = |entry: &Entry| adopted_entry(entry).unwrap_or(&entry.entry_id).to_owned();
    let ids: BTreeSet<String> = held.iter().map(stands_as).collect();
    let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let correcting = ledger::entries_correcting(connection, &ids).await?;
    let gone: BTreeSet<&str> = correcting.iter().map(|entry| &*entry.corrects_entry_id).collect();
    let held = held.into_iter().filter(|entry| gone.contains(&*stands_as(entry)));
    let mut undone: BTreeMap<EffectKey, Entry> = held.map(|entry| (entry.key.clone(), entry)).collect();
    undone.extend(undone_reversals(connection, corrections).await?);
    Ok(undone)
}

/// Reversals that were undone: what a plan would reverse now is the entry that undid the one before. By the key of
/// the correction, with the reversal of then.
async fn undone_reversals(
    connection: &mut AnyConnection,
    corrections: &[Correction],
) -> Result<BTreeMap<EffectKey, Entry>> {
    let reversals = corrections.iter().filter(|row| row.action == Action::ReverseEntry);
    let excess: BTreeMap<&str, EffectKey> =
        reversals.filter_map(|row| Some((row.effect_ids.last()?.as_str(), key_of(row)))).collect();
    let entries = ledger::entries_by_id(connection, &excess.keys().copied().collect()).await?;
    let undoing: BTreeMap<&str, &EffectKey> = entries
        .iter()
        .filter(|entry| !entry.corrects_entry_id.is_empty())
        .filter_map(|entry| Some((&*entry.corrects_entry_id, excess.get(&*entry.entry_id)?)))
        .collect();
    let before = ledger::entries_by_id(connection, &undoing.keys().copied().collect()).await?;
    Ok(before
        .into_iter()
        .filter_map(|entry| Some(((*undoing.get(&*entry.entry_id)?).clone(), entry)))
        .collect())
}

fn leave_out(
    corrections: &mut Vec<Correction>,
    findings: &mut [Finding],
    undone: &BTreeMap<EffectKey, Entry>,
) {
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    corrections.retain(|row| {
        let Some(entry) = undone.get(&key_of(row)) else { return true };
        let how = match &*entry.run_id {
            "" => format!("booked before as {}", entry.entry_id),
            run_id => format!("corrected before in run {run_id}"),
        };
        told.insert(row.finding_id.clone(), format!("{how} and undone since: a person decides"));
        false
    });
    if told.is_empty() {
        return;
    }
    let planned: BTreeSet<&str> = corrections.iter().map(|row| &*row.finding_id).collect();
    for finding in findings {
        let Some(how) = told.get(&finding.id()) else { continue };
        if !planned.contains(&*finding.id()) {
            finding.action = Action::Review;
        }
        let so_far = std::mem::take(&mut finding.note);
        finding.note = if so_far.is_empty() { how.clone() } else { format!("{so_far}; {how}") };
    }
}
