//! Before something is called missing and booked: does a row stand for it in the team's tables, with a status that
//! `effects.sql` leaves out?
//!
//! The one thing to get right: such a row is put right, and no second one is booked. A handler to which the event goes once
//! more finds its own row; a statement that inserts does not.

use super::Job;
use super::gathering::Gathered;
use crate::config::{Settings, Target, Unusable};
use crate::findings::Finding;
use crate::gather::{Doing, Moment, Unbooked, takes_over};
use crate::record::Scope;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

/// Takes the booking back of each finding for which a row stands in the books.
pub(super) async fn leave_standing(
    job: &Job<'_>,
    gathered: &Gathered,
    findings: &mut [Finding],
) -> Result<()> {
    let Some(local) = &gathered.local else { return Ok(()) };
    let mut by_scope: BTreeMap<Scope, BTreeSet<String>> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| is_written(job.settings, finding)) {
        let ids = by_scope.entry(finding.scope.clone()).or_default();
        ids.extend([finding.object_id.clone(), finding.root_id.clone()]);
    }
    if by_scope.is_empty() {
        return Ok(());
    }
    let mut standing: Vec<Unbooked> = Vec::new();
    let mut moment = Moment::begin(Some(local), None).await?;
    for (scope, ids) in &by_scope {
        standing.extend(moment.unbooked_of(scope, ids).await?);
    }
    moment.end().await?;
    let taken_over = taken_over(job.settings)?;
    let mut by_object: BTreeMap<&str, Vec<&Unbooked>> = BTreeMap::new();
    for row in &standing {
        by_object.entry(&row.object_id).or_default().push(row);
    }
    for finding in findings.iter_mut().filter(|finding| is_written(job.settings, finding)) {
        let Some(kind) = finding.booked() else { continue };
        let is_sql = job.settings.target_of(finding.kind) == Some(Target::Sql);
        let ids = BTreeSet::from([&*finding.object_id, &*finding.root_id]);
        let rows: Vec<(&str, &str)> = ids
            .iter()
            .filter_map(|id| by_object.get(id))
            .flatten()
            .filter(|row| row.is_of(&finding.scope, kind, &finding.object_id, &finding.root_id))
            .filter(|row| !(is_sql && taken_over.contains(&row.status)))
            .map(|row| (&*row.effect_id, &*row.status))
            .collect();
        if !rows.is_empty() {
            finding.leave_standing(&rows);
        }
    }
    Ok(())
}

/// Whether a row would be written for it, by a statement or by a person.
fn is_written(settings: &Settings, finding: &Finding) -> bool {
    finding.booked().is_some() && settings.target_of(finding.kind) != Some(Target::Http)
}

/// Statuses of rows that the team's `apply_effect.sql` makes the booked effect of.
fn taken_over(settings: &Settings) -> Result<BTreeSet<String>> {
    let Some(target) = &settings.targets.sql else { return Ok(BTreeSet::new()) };
    let path = target.queries.join(Doing::ApplyEffect.file());
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(takes_over(&text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(Unusable::new(format!("cannot read {}: {error}", path.display()), "").into()),
    }
}
