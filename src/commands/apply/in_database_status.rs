//! The target `sql`, as far as it sets statuses: under the same rules as in recon's own books, by the team's words.
//!
//! The one thing to get right: what a person set later is left alone, and a status that the team's own statement does
//! not show afterwards was not set.

use super::carry_out::RowOutcome;
use super::in_database::{Batch, End, moved, not_as_planned, refused};
use super::targets::named;
use crate::apply::payment::{status_of, sums};
use crate::apply::state::{Fetched, Freshness, Verdict, judge};
use crate::correction::Correction;
use crate::findings::Action;
use crate::gather::{Doing, Ran, TargetValues, TargetWriter, Team};
use crate::record::{LocalState, Status};
use crate::store::states::{ObjectKey, State};
use anyhow::Result;
use std::collections::BTreeSet;

impl Batch<'_> {
    /// The payment's status where it lags with the effect that was booked just now.
    pub(super) async fn follow(
        &self,
        writer: &mut TargetWriter<'_>,
        row: &Correction,
        now: &Team,
        values: &mut TargetValues,
        ids: &BTreeSet<String>,
    ) -> Result<Option<End>> {
        let Some(status) = row.target_state.filter(|_| self.target.can(Doing::SetState)) else {
            return Ok(None);
        };
        let current = status_of(&now.states, row);
        let wanted = Fetched { status, refunded_minor: None, provider_time_us: row.occurred_at_us };
        let verdict =
            judge(local_state(current).as_ref(), &wanted, Freshness::AsOfRun, self.work.run_started_us);
        if verdict != Verdict::Write {
            return Ok(None);
        }
        if let Err(end) = self.status_values(values, row, current, wanted) {
            return Ok(Some(end));
        }
        match writer.run(Doing::SetState, values).await? {
            Ran::Done => Ok(self.status_shown(writer, row, ids, wanted).await?),
            // There is no row for the payment yet, and the team's statement makes none.
            Ran::Untouched(_) if current.is_none() => Ok(None),
            other => Ok(Some(refused(row, other))),
        }
    }

    pub(super) async fn set_state(
        &self,
        writer: &mut TargetWriter<'_>,
        row: &Correction,
        before: &Team,
        ids: &BTreeSet<String>,
    ) -> Result<End> {
        let root: ObjectKey = (row.scope.clone(), row.root_id.clone());
        let Some(fetched) = self.fetched.get(&root).copied() else {
            return Ok(End::LetGo((RowOutcome::NotFetched, None)));
        };
        let current = status_of(&before.states, row);
        let wanted = wanted(fetched, current);
        let started_us = self.work.run_started_us;
        match judge(local_state(current).as_ref(), &wanted, Freshness::JustNow, started_us) {
            Verdict::Write => {}
            Verdict::Same | Verdict::Refused => {
                let now = current.map_or("", |state| state.status.as_str());
                return Ok(moved(
                    row,
                    &format!("the status is {now} by now, and the provider's {}", wanted.status),
                ));
            }
            Verdict::ManualOverride => return Ok(End::LetGo((RowOutcome::ManualOverride, None))),
        }
        let mut values = self.values(row);
        if let Err(end) = self.status_values(&mut values, row, current, wanted) {
            return Ok(end);
        }
        match writer.run(Doing::SetState, &values).await? {
            Ran::Done => {}
            other => return Ok(refused(row, other)),
        }
        if let Some(end) = self.status_shown(writer, row, ids, wanted).await? {
            return Ok(end);
        }
        let after = writer.payment(&row.scope, ids).await?;
        if sums(&after.effects) != sums(&before.effects) {
            return Ok(not_as_planned(row, Doing::SetState, "effects.sql shows that money moved"));
        }
        if row.action == Action::SetState
            && let Some(end) = self.file(writer, row, &mut values).await?
        {
            return Ok(end);
        }
        Ok(End::Keep((RowOutcome::Applied, None)))
    }

    /// What is wrong where the team's statement does not show the status that was set.
    async fn status_shown(
        &self,
        writer: &mut TargetWriter<'_>,
        row: &Correction,
        ids: &BTreeSet<String>,
        wanted: Fetched,
    ) -> Result<Option<End>> {
        let after = writer.payment(&row.scope, ids).await?;
        let shown = status_of(&after.states, row);
        let is_shown = shown.is_some_and(|state| state.status == wanted.status);
        let told = shown.map_or("nothing", |state| state.status.as_str());
        let why = format!("states.sql shows {told} instead of {}", wanted.status);
        Ok((!is_shown).then(|| not_as_planned(row, Doing::SetState, &why)))
    }

    /// What a status is set with: our word, and the team's where exactly one means it.
    fn status_values(
        &self,
        values: &mut TargetValues,
        row: &Correction,
        current: Option<&LocalState>,
        wanted: Fetched,
    ) -> Result<(), End> {
        if let Some(current) = current {
            values.text("object_id", &current.object_id);
        }
        values.text("status", wanted.status.as_str());
        values.text("found_status", current.map_or("", |state| state.status.as_str()));
        values.integer("refunded_minor", wanted.refunded_minor);
        match self.word(wanted.status) {
            Ok(word) => values.text("state", word),
            Err(why) if self.target.wants(Doing::SetState, "state") => {
                return Err(End::LetGo((RowOutcome::Refused, Some(format!("{}: {why}", named(row))))));
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// The team's word for a status.
    fn word(&self, status: Status) -> Result<&str, String> {
        let map = &self.settings.local.status_map;
        let words: Vec<&str> =
            map.iter().filter(|(_, ours)| **ours == status).map(|(word, _)| &**word).collect();
        match &*words {
            [] => Ok(status.as_str()),
            [word] => Ok(word),
            _ => Err(format!(
                "{} of [local.status_map] mean {status}: say in set_state.sql which is written, by :status",
                words.join(" and ")
            )),
        }
    }
}

/// A team's status as the rules for writing one know it. Who keeps no refunded sum is not asked for one.
pub(super) fn local_state(current: Option<&LocalState>) -> Option<State> {
    current.map(|state| State {
        status: state.status,
        refunded_minor: state.refunded_minor,
        provider_time_us: 0,
        updated_at_us: state.updated_at_us,
        changed_by: state.changed_by.clone(),
    })
}

pub(super) fn wanted(fetched: Fetched, current: Option<&LocalState>) -> Fetched {
    let keeps_sums = current.is_none_or(|state| state.refunded_minor.is_some());
    Fetched { refunded_minor: fetched.refunded_minor.filter(|_| keeps_sums), ..fetched }
}
