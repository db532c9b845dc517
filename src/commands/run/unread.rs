//! What the books name and nobody could read: of its absence nothing is said.
//!
//! The one thing to get right: "not there" needs an answer for that very id, or the list that it would stand in.

use super::Job;
use super::completing::last_local_us;
use super::gathering::Gathered;
use crate::findings::{Group, Unread};
use crate::gather::CoverageStatus;
use crate::provider::stripe::{self, Reading};
use crate::record::{EffectKind, SECOND_US};
use crate::store;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};

/// An object is made at most this long before it is booked, else it is not looked for in its list: as long as
/// the provider retries an event.
const BOOKED_WITHIN_US: i64 = 3 * 86_400 * SECOND_US;

/// What of these groups was neither asked for (by this run, or offline by an earlier one) nor read with its list.
pub(super) async fn unread(
    job: &Job<'_>,
    gathered: &Gathered,
    reading: &Reading,
    groups: &BTreeMap<String, Group>,
) -> Result<Unread> {
    let scope = &reading.scope;
    let is_refused = |stream: &str| gathered.lacks_permission(scope, Some(stream));
    let mut unread = Unread::NONE;
    unread.kinds.extend(EffectKind::ALL.into_iter().filter(|kind| is_refused(list_of(*kind))));
    let refused = groups.iter().filter(|(root, group)| {
        let is_known = !group.provider_effects.is_empty() || !group.provider_states.is_empty();
        !is_known && stripe::stream_of_id(root).is_some_and(is_refused)
    });
    unread.roots.extend(refused.map(|(root, _)| root.clone()));
    if gathered.clients.contains_key(&*scope.provider) {
        return Ok(unread);
    }
    let asked = store::asked_whole(job.store, scope, &groups.keys().cloned().collect()).await?;
    let is_listed = |stream: &str, at_us: i64| {
        gathered.coverage.iter().any(|row| {
            row.scope == *scope
                && row.stream == stream
                && row.status == CoverageStatus::Covered
                && row.from_us <= at_us.saturating_sub(BOOKED_WITHIN_US)
                && at_us < row.until_us
        })
    };
    let unasked: BTreeSet<String> = groups
        .iter()
        .filter(|(root, group)| {
            let last_us = last_local_us(group);
            let was_asked = asked.get(*root).is_some_and(|asked_us| last_us.is_none_or(|us| us <= *asked_us));
            let mut rows = group.local_effects.iter().filter(|row| row.root_id == **root);
            let mut states = group.local_states.iter();
            let list_of_state = |id: &str| stripe::stream_of_id(id).unwrap_or("payment_intents");
            let mut is_read = || {
                rows.all(|row| is_listed(list_of(row.kind), row.applied_at_us))
                    && states.all(|state| is_listed(list_of_state(&state.object_id), state.updated_at_us))
            };
            !was_asked && !is_read()
        })
        .map(|(root, _)| root.clone())
        .collect();
    unread.roots.extend(unasked);
    Ok(unread)
}

/// The list whose objects carry such effects.
const fn list_of(kind: EffectKind) -> &'static str {
    match kind {
        EffectKind::Credit | EffectKind::Fee => "charges",
        EffectKind::Refund => "refunds",
        EffectKind::DisputeWithdrawn | EffectKind::DisputeReinstated => "disputes",
        EffectKind::Payout => "payouts",
    }
}
