//! What is there in a team's books already, or not any more, before a correction writes: rows under another status, and
//! effects that the history says were carried out.
//!
//! The one thing to get right: recon's history says what was done, and never what is there.

use super::in_database::{End, moved};
use super::targets::{booked, named};
use crate::apply::payment::sums;
use crate::correction::Correction;
use crate::gather::{TargetBooks, Team, Unbooked};
use crate::record::{EffectKind, LocalEffect};
use anyhow::Result;
use std::collections::BTreeSet;

/// A row that is there under another status, of which the team's statement does not say that it takes it over.
pub(super) fn stands_unbooked(
    target: &TargetBooks,
    row: &Correction,
    kind: EffectKind,
    before: &Team,
) -> Option<End> {
    let is_left = |other: &&Unbooked| !target.taken_over().any(|word| word == other.status.as_str());
    let mut standing = standing(&before.unbooked, row, kind).filter(is_left);
    standing.next().map(|other| {
        let status = if other.status.is_empty() { "without a status" } else { &*other.status };
        let why = format!(
            "the row {} stands there ({status}), so that a second one would be booked twice",
            other.effect_id
        );
        moved(row, &why)
    })
}

/// Rows that are there for this effect and not booked.
fn standing<'a>(
    rows: &'a [Unbooked],
    row: &'a Correction,
    kind: EffectKind,
) -> impl Iterator<Item = &'a Unbooked> {
    rows.iter().filter(move |other| other.is_of(&row.scope, kind, &row.object_id, &row.root_id))
}

/// Whether a row that was to be taken over is there no more beside the booked one.
pub(super) fn check_taken_over(after: &[Unbooked], row: &Correction, kind: EffectKind) -> Result<(), String> {
    match standing(after, row, kind).next() {
        Some(other) => Err(format!(
            "the row {} still stands there ({}), beside a new one",
            other.effect_id, other.status
        )),
        None => Ok(()),
    }
}

/// What the history says was carried out, and the books know nothing of: undone since, or lost with a backup.
pub(super) async fn lost<'r>(target: &TargetBooks, done: &[&'r Correction]) -> Result<Vec<&'r Correction>> {
    let mut lost = Vec::new();
    let mut writer = None;
    for row in done {
        let Some((kind, _)) = booked(row)? else { continue };
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(target.begin().await?),
        };
        let ids = BTreeSet::from([row.object_id.clone(), row.root_id.clone()]);
        let team = writer.payment(&row.scope, &ids).await?;
        if is_lost(&team, row, kind) {
            lost.push(*row);
        }
    }
    if let Some(writer) = writer {
        writer.let_go().await?;
    }
    Ok(lost)
}

/// Whether nothing of an effect is in the books: on its object, or on the payment as a whole.
pub(super) fn is_lost(team: &Team, row: &Correction, kind: EffectKind) -> bool {
    let is_its = |local: &&LocalEffect| local.object_id == row.object_id || local.object_id == row.root_id;
    sums(team.effects.iter().filter(|local| local.kind == kind).filter(is_its)).is_empty()
}

pub(super) fn lost_text(row: &Correction) -> String {
    format!(
        "{}: carried out before, and the books do not show it any more: undone since, or a backup was restored. \
         Where it is to be booked, run again and apply the new plan",
        named(row)
    )
}
