//! Ids of local rows that no record leads to: the provider is asked for them, so that every row finds its
//! payment.
//!
//! The one thing to get right: a row just beside the window may be the booking of money inside, on an invoice
//! or a session that is older than the window.

use super::Job;
use super::gathering::{Gathered, fetch_ids};
use crate::gather::{Moment, ProviderSide};
use crate::provider::stripe::{self, Reading};
use crate::record::{Fact, SECOND_US, Window};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// How far beside the window rows are looked at, and most ids that are asked for there: the nearest rows first.
const BESIDE_US: i64 = 86_400 * SECOND_US;
const BESIDE_MAX: usize = 300;

/// Asks for what the rows of the window name, and for the invoices and sessions that rows beside it name. Capped;
/// the rest stays unasked and the notes say so. Answers what the provider has of them.
pub(super) async fn ask_for_unknown_ids(
    job: &Job<'_>,
    gathered: &Gathered,
    reading: &Reading,
) -> Result<BTreeSet<String>> {
    let Some(client) = gathered.clients.get(&*reading.scope.provider) else { return Ok(BTreeSet::new()) };
    let mut moment = Moment::begin(gathered.local.as_ref(), None).await?;
    let side = ProviderSide { store: job.store, reading };
    let mut ids: BTreeSet<String> = BTreeSet::new();
    let mut collect = |fact: Fact| {
        ids.extend(unresolved(reading, fact).map(|(id, _)| id));
        Ok(())
    };
    moment.effects(job.window, &mut collect).await?;
    moment.states(job.window, &mut collect).await?;
    keep_unknown(side, &mut ids).await?;
    let mut asked: BTreeSet<String> = ids.into_iter().take(job.settings.limits.ask_count_max).collect();

    let Window { from_us, until_us } = job.window;
    let before = Window { from_us: from_us.saturating_sub(BESIDE_US), until_us: from_us };
    let after = Window { from_us: until_us, until_us: until_us.saturating_add(BESIDE_US) };
    // How far from the window the nearest row of each id is.
    let mut beside: BTreeMap<String, i64> = BTreeMap::new();
    let mut collect = |fact: Fact| {
        let leads_on = |id: &str| matches!(stripe::stream_of_id(id), Some("invoices" | "checkout_sessions"));
        if let Some((id, at_us)) = unresolved(reading, fact).filter(|(id, _)| leads_on(id)) {
            let distance_us = if at_us < from_us { from_us - at_us } else { at_us - until_us };
            let nearest_us = beside.entry(id).or_insert(distance_us);
            *nearest_us = distance_us.min(*nearest_us);
        }
        Ok(())
    };
    moment.effects(before, &mut collect).await?;
    moment.effects(after, &mut collect).await?;
    // The provider is asked with no transaction open.
    moment.end().await?;
    let mut ids = beside.keys().cloned().collect();
    keep_unknown(side, &mut ids).await?;
    let mut nearest: Vec<(i64, String)> =
        beside.into_iter().filter(|(id, _)| ids.contains(id)).map(|(id, us)| (us, id)).collect();
    nearest.sort_unstable();
    let left = job.settings.limits.ask_count_max.saturating_sub(asked.len()).min(BESIDE_MAX);
    asked.extend(nearest.into_iter().take(left).map(|(_, id)| id));
    let found = fetch_ids(job, gathered, side, client, asked).await?;
    side.learn(&found).await?;
    Ok(found)
}

/// The id of a local row of this scope that leads nowhere yet, and its time.
fn unresolved(reading: &Reading, fact: Fact) -> Option<(String, i64)> {
    match fact {
        Fact::LocalEffect(row) if row.scope == reading.scope && row.root_id == row.object_id => {
            Some((row.object_id, row.applied_at_us))
        }
        Fact::LocalState(row) if row.scope == reading.scope && row.root_id == row.object_id => {
            Some((row.object_id, row.updated_at_us))
        }
        _ => None,
    }
}

/// Leaves the ids that nothing is stored of, and learns the aliases of the others.
async fn keep_unknown(side: ProviderSide<'_>, ids: &mut BTreeSet<String>) -> Result<()> {
    let mut known = side.known_ids(ids).await?;
    ids.retain(|id| !known.contains(id));
    // A record that is stored need not have taught its aliases: a run may have been killed in between.
    known.retain(|id| !stripe::is_final_root(id));
    side.learn(&known).await
}
