//! Where each correction of a plan goes, and carrying all of them out.
//!
//! The one thing to get right: a plan with a row that has nowhere to go is refused whole, before anything is written.

use super::asking::{AskProvider, magnitude};
use super::carry_out::{Tally, Work, carry_out};
use super::{deliver, in_database};
use crate::config::{Settings, Side, Target, Unusable};
use crate::correction::Correction;
use crate::findings::{Action, Kind};
use crate::gather::ProviderSide;
use crate::provider::stripe::Reading;
use crate::record::{EffectKind, Fact, Window};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

const ALWAYS: Window = Window { from_us: i64::MIN, until_us: i64::MAX };
const HINT: &str = "choose [corrections.target] for it: \"sql\" (your statements) or \"http\" (your handler), see docs/targets.md; or take its rows out of the plan and carry them out yourself, with effect_key as a unique key";

/// Sorts a plan's rows by where they go.
///
/// # Errors
/// [`Unusable`] where a row has nowhere to go.
pub(super) fn sorted(
    settings: &Settings,
    corrections: &[Correction],
) -> Result<BTreeMap<Target, Vec<Correction>>, Unusable> {
    let mut sorted: BTreeMap<Target, Vec<Correction>> = BTreeMap::new();
    let mut nowhere: BTreeMap<String, u64> = BTreeMap::new();
    for row in corrections {
        // An event that stands for nothing in the books is filed where events are received.
        let is_filed_here = is_event_alone(row) && settings.inbox == Side::Store;
        let target = row.kind().and_then(|kind| settings.target_of(kind));
        if let Some(target) = if is_filed_here { Some(Target::Ledger) } else { target } {
            sorted.entry(target).or_default().push(row.clone());
        } else {
            let word = row.kind().map_or("?".to_owned(), |kind| kind.to_string());
            *nowhere.entry(word).or_default() += 1;
        }
    }
    if nowhere.is_empty() {
        return Ok(sorted);
    }
    let told: Vec<String> = nowhere.iter().map(|(kind, rows)| format!("{kind} ({rows})")).collect();
    Err(Unusable::new(
        format!(
            "corrections have nowhere to be written: `[local]` names a team's own database, and no target is chosen for {}",
            told.join(", ")
        ),
        HINT,
    ))
}

fn is_event_alone(row: &Correction) -> bool {
    row.action == Action::ReplayEvent && row.effect.is_none()
}

/// Checks that every kind that `[corrections] auto` names has somewhere to go, so that a run with `--apply` says so
/// before it begins.
///
/// # Errors
/// [`Unusable`] where one has not.
pub fn check_auto(settings: &Settings) -> Result<(), Unusable> {
    let is_nowhere = |kind: &&Kind| settings.target_of(**kind).is_none();
    match settings.corrections.auto.iter().find(is_nowhere) {
        Some(kind) => Err(Unusable::new(
            format!(
                "[corrections] auto names {kind}, which has nowhere to be written: `[local]` names a team's own \
                 database, and no target is chosen for it"
            ),
            HINT,
        )),
        None => Ok(()),
    }
}

/// Whether anything can be carried out at all.
pub(super) fn has_any(settings: &Settings) -> bool {
    settings.local.side == Side::Store || !settings.targets.chosen.is_empty()
}

/// Carries out every row where it belongs: the ledger's first, then the database's, then the handler's.
///
/// # Errors
/// As each of the three; what was carried out before stays so, and applying again goes on from there.
pub(super) async fn carry_out_all(
    work: Work<'_>,
    settings: &Settings,
    corrections: &[Correction],
    provider: &impl AskProvider,
) -> Result<Tally> {
    let mut tally = Tally::default();
    for (target, rows) in sorted(settings, corrections)? {
        tally.merge(match target {
            Target::Ledger => carry_out(work, &rows, provider).await?,
            Target::Sql => in_database::carry_out(work, settings, &rows, provider).await?,
            Target::Http => deliver::carry_out(work, settings, &rows, provider).await?,
        });
    }
    Ok(tally)
}

/// What the provider has of a payment's effects of one kind, as kept: magnitude, minor units of the row's currency.
pub(super) async fn provider_minor(
    work: Work<'_>,
    settings: &Settings,
    row: &Correction,
    kind: EffectKind,
) -> Result<i128> {
    let Some(provider) = settings.providers.iter().find(|one| *one.name == *row.scope.provider) else {
        return Ok(0);
    };
    let basis = settings.report.basis;
    let reading = Reading::of(provider, row.scope.clone(), ALWAYS, basis, work.now_us);
    let reading = Reading { effects: EffectKind::ALL.into(), ..reading };
    let side = ProviderSide { store: work.store, reading: &reading };
    let (facts, _) = side.whole_objects(&BTreeSet::from([row.root_id.clone()])).await?;
    let is_its = |fact: &Fact| match fact {
        Fact::ProviderEffect(effect) if effect.kind == kind && effect.currency == row.currency => {
            Some(i128::from(effect.amount_minor))
        }
        _ => None,
    };
    Ok(facts.iter().filter_map(is_its).sum())
}

/// The effect that a row books and its magnitude; `None` where it books none.
pub(super) fn booked(row: &Correction) -> Result<Option<(EffectKind, i64)>> {
    match (row.action, row.effect) {
        (Action::ReplayEvent | Action::ApplyEffect, Some(kind)) => Ok(Some((kind, magnitude(row, kind)?))),
        _ => Ok(None),
    }
}

/// A row as lines about it begin.
pub(super) fn named(row: &Correction) -> String {
    format!("{}/{}", row.scope, row.effect_key)
}
