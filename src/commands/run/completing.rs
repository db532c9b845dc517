//! Before anybody is accused: payments that look wrong are asked for whole, within the cap.
//!
//! The one thing to get right: what could not be asked for is not known whole, online or offline.

use super::Job;
use super::gathering::Gathered;
use crate::findings::Group;
use crate::gather::{Sides, fetch_whole};
use crate::store;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

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
        doubtful: &BTreeMap<String, Group>,
    ) -> Result<BTreeSet<String>> {
        if doubtful.is_empty() {
            return Ok(BTreeSet::new());
        }
        let scope = &sides.provider.reading.scope;
        let Some(client) = gathered.clients.get(&*scope.provider) else {
            let roots = doubtful.keys().cloned().collect();
            let mut asked = store::asked_whole(job.store, scope, &roots).await?;
            asked.retain(|root, asked_at_us| {
                doubtful.get(root).and_then(last_local_us).is_none_or(|last_us| last_us <= *asked_at_us)
            });
            return Ok(asked.into_keys().collect());
        };
        let roots: BTreeSet<String> = doubtful.keys().take(self.left).cloned().collect();
        self.left -= roots.len();
        let answered = fetch_whole(sides.provider, client, &roots, &job.request.cancel).await?;
        let mut is_whole: BTreeMap<String, bool> = doubtful
            .keys()
            .map(|root| (root.clone(), roots.contains(root) && !answered.unanswered.contains(root)))
            .collect();
        // What was read may have said that a payment is another one.
        for (root, target) in store::resolve(job.store, scope, &roots).await? {
            let is_asked = is_whole.get(&root).copied().unwrap_or_default();
            is_whole.insert(target.root_id, is_asked);
        }
        store::save_asked(job.store, scope, &is_whole, job.request.now_us).await?;
        Ok(is_whole.into_iter().filter_map(|(root, is_whole)| is_whole.then_some(root)).collect())
    }
}

/// When the books last said something of a payment, Unix µs.
fn last_local_us(group: &Group) -> Option<i64> {
    let rows = group.local_effects.iter().map(|row| row.applied_at_us);
    rows.chain(group.local_states.iter().map(|state| state.updated_at_us)).max()
}
