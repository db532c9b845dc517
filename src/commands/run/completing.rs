//! Before anybody is accused: payments that look wrong are asked for whole, within the cap.
//!
//! The one thing to get right: what could not be asked for is not known whole, online or offline.

use super::Job;
use super::gathering::Gathered;
use super::of_invoices::Doubtful;
use crate::findings::Group;
use crate::gather::{Sides, Whole, fetch_whole};
use crate::provider::stripe;
use crate::record::InvoiceParts;
use crate::store;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// How often what was read may name more payments of an invoice.
const ROUNDS_MAX: usize = 3;

/// What is known of the payments that were in doubt.
#[derive(Debug, Default)]
pub(super) struct Completed {
    /// Roots that are known whole.
    pub(super) whole: BTreeSet<String>,
    /// Roots of which the provider would not say whether an invoice was paid with them.
    pub(super) unnamed: BTreeSet<String>,
}

/// How many payments may still be asked for in this run.
#[derive(Debug)]
pub(super) struct Completing {
    left: usize,
}

impl Completing {
    pub(super) fn new(job: &Job<'_>) -> Self {
        Self { left: job.settings.limits.ask_count_max }
    }

    /// Asks for these payments whole, and says which are. Offline it is what earlier runs kept, and what the
    /// books have done since is not covered by it.
    pub(super) async fn whole(
        &mut self,
        job: &Job<'_>,
        gathered: &Gathered,
        sides: &Sides<'_>,
        doubtful: &Doubtful,
    ) -> Result<Completed> {
        let Doubtful { groups, by_name } = doubtful;
        if groups.is_empty() {
            return Ok(Completed::default());
        }
        let scope = &sides.provider.reading.scope;
        let Some(client) = gathered.clients.get(&*scope.provider) else {
            let roots = groups.keys().cloned().collect();
            let mut asked = store::asked_whole(job.store, scope, &roots).await?;
            asked.retain(|root, asked_at_us| {
                groups.get(root).and_then(last_local_us).is_none_or(|last_us| last_us <= *asked_at_us)
            });
            return Ok(Completed { whole: asked.into_keys().collect(), unnamed: BTreeSet::new() });
        };
        let first = groups.keys().filter(|root| !by_name.contains(*root));
        let mut next: BTreeSet<String> = first.chain(by_name).take(self.left).cloned().collect();
        let mut roots = BTreeSet::new();
        let mut answered = Whole::default();
        for _ in 0..ROUNDS_MAX {
            self.left -= next.len();
            answered.add(fetch_whole(sides.provider, client, &next, &job.request.cancel).await?);
            job.stop_if_asked()?;
            roots.append(&mut next);
            // An invoice that was just heard of may have been paid with more payments.
            let invoices = sides.provider.invoices_of(&roots).await?;
            let all = invoices.iter().flat_map(InvoiceParts::roots);
            next = all.filter(|root| !roots.contains(*root)).cloned().collect();
            next = next.into_iter().take(self.left).collect();
            if next.is_empty() {
                break;
            }
        }
        let mut is_whole: BTreeMap<String, bool> = groups
            .keys()
            .chain(&roots)
            .map(|root| (root.clone(), roots.contains(root) && !answered.unanswered.contains(root)))
            .collect();
        // What was read may have said that a payment is another one.
        for (root, target) in store::resolve(job.store, scope, &roots, stripe::is_final_root).await? {
            let is_asked = is_whole.get(&root).copied().unwrap_or_default();
            is_whole.insert(target.root_id, is_asked);
        }
        store::save_asked(job.store, scope, &is_whole, job.request.now_us).await?;
        let whole = is_whole.into_iter().filter_map(|(root, is_whole)| is_whole.then_some(root)).collect();
        Ok(Completed { whole, unnamed: answered.unnamed })
    }
}

/// When the books last said something of a payment, Unix µs.
pub(super) fn last_local_us(group: &Group) -> Option<i64> {
    let rows = group.local_effects.iter().map(|row| row.applied_at_us);
    rows.chain(group.local_states.iter().map(|state| state.updated_at_us)).max()
}
