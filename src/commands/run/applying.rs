//! `--apply`: what the configuration allows without a reviewed plan, under the run's own lease.

use super::Job;
use super::gathering::Gathered;
use crate::clock;
use crate::commands::apply::{
    AskProvider, Fetched, RowOutcome, Tally, Work, apply_auto, fetch_events_with, moved_lines,
};
use crate::config::Side;
use crate::correction::Correction;
use crate::gather::{ExpectedEffect, ProviderSide, Standing, fetch_standings, fetch_state};
use crate::provider::Client;
use crate::provider::stripe::Reading;
use crate::record::Scope;
use crate::report::summary::Applied;
use crate::store::lease::Lease;
use anyhow::Result;
use std::collections::BTreeSet;

/// Carries out what the configuration allows without a reviewed plan.
pub(super) async fn apply_allowed(
    job: &Job<'_>,
    gathered: &Gathered,
    corrections: &[Correction],
    lease: &Lease,
) -> Result<Tally> {
    let work = Work {
        store: job.store,
        run_id: &job.run_id,
        run_started_us: job.request.now_us,
        now_us: clock::now_us(),
        inbox_is_ours: job.settings.inbox == Side::Store,
        keeps_messages: job.settings.outbox.url.is_some(),
        lease: Some(lease),
    };
    apply_auto(work, job.settings, corrections, &Reached { job, gathered }).await
}

/// The tally for the summary.
pub(super) fn applied(tally: &Tally) -> Applied {
    let counts = RowOutcome::ALL.into_iter().map(|outcome| (outcome.as_str(), tally.count(outcome)));
    Applied { rows: counts.collect(), moved: moved_lines(tally) }
}

/// The tally for a person.
pub(super) fn applied_text(tally: &Tally) -> String {
    let mut text = "\nApplied without review, as [corrections] auto allows:\n".to_owned();
    let counted = RowOutcome::ALL.into_iter().filter(|outcome| tally.count(*outcome) > 0);
    let counts = counted.map(|outcome| format!("{outcome:<16} {:>9}", tally.count(outcome)));
    for line in counts.chain(moved_lines(tally)) {
        text.push_str("  ");
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The providers that this run has read.
struct Reached<'a> {
    job: &'a Job<'a>,
    gathered: &'a Gathered,
}

impl Reached<'_> {
    /// `None` offline.
    fn reach(&self, scope: &Scope) -> Option<(&Reading, &Client)> {
        let reading = self.gathered.readings.iter().find(|reading| reading.scope == *scope)?;
        Some((reading, self.gathered.clients.get(&*scope.provider)?))
    }
}

impl AskProvider for Reached<'_> {
    async fn status(&self, scope: &Scope, root_id: &str) -> Result<Option<Fetched>> {
        let Some((reading, client)) = self.reach(scope) else { return Ok(None) };
        let fresh = fetch_state(self.job.store, client, reading, root_id, &self.job.request.cancel).await?;
        Ok(fresh.map(Fetched::from))
    }

    async fn standings(&self, scope: &Scope, expected: &[ExpectedEffect]) -> Result<Vec<Standing>> {
        let Some((reading, client)) = self.reach(scope) else {
            return Ok(vec![Standing::NotAnswered("offline"); expected.len()]);
        };
        let side = ProviderSide { store: self.job.store, reading };
        fetch_standings(side, client, expected, &self.job.request.cancel).await
    }

    async fn fetch_events(&self, scope: &Scope, ids: &BTreeSet<String>) -> Result<()> {
        let Some((_, client)) = self.reach(scope) else { return Ok(()) };
        fetch_events_with(self.job.store, client, scope, ids, &self.job.request.cancel).await
    }
}
