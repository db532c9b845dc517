//! One transaction for a batch of events: effects through the door, statuses under rank, messages, and how each
//! event ends.
//!
//! The one thing to get right: everything that decides is read under the write lock, and how an event ends is
//! written with what it did. An event that ended meanwhile does nothing.

use super::decide::{Deed, Plan, Source};
use super::grounds;
use super::money::{Booked, through_the_door};
use crate::apply::Answer;
use crate::apply::state::{self, Freshness, Verdict, judge};
use crate::record::{EffectKey, EffectKind, EventKey, InboxStatus, Status};
use crate::store::states::{self, ObjectKey, State};
use crate::store::work::{self, Claimed, Ending, Pause};
use crate::store::{Store, ledger};
use anyhow::{Context, Result};
use sqlx::{Any, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Who a status row names that was fetched, and one that an event's own object said.
const BY_FETCH: &str = "worker";
const BY_EVENT: &str = "event";
/// For so long an event that was overtaken is due again at once, µs.
const AT_ONCE_MAX_US: i64 = 60_000_000;
/// A parked event looks again after this, should nobody wake it.
pub(super) const PARKED_LOOK: Duration = Duration::from_mins(15);

/// An event and what is to be done about it.
#[derive(Clone, Debug)]
pub struct Item {
    /// The event.
    pub claimed: Claimed,
    /// What to do.
    pub plan: Plan,
}

/// What booking needs besides the items.
#[derive(Clone, Copy, Debug)]
pub struct Booking<'a> {
    /// The store.
    pub store: &'a Store,
    /// Now, Unix µs.
    pub now_us: i64,
    /// Attempts before an event is a dead letter.
    pub attempts_max: i64,
    /// How long an event may wait for another, or for the provider, µs.
    pub park_max_us: i64,
    /// How long one waits until the provider is asked again.
    pub pause: Pause,
    /// Whether effects send messages.
    pub has_outbox: bool,
}

/// How an event ended, or that it is to be tried again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The status that it has now; `received` where it is due again.
    pub status: &'static str,
    /// Why, without personal data.
    pub error: String,
    parked_for: String,
    /// How long it waits for what is not its own fault, so that no attempt is used up; `None`: as its claim booked.
    pause: Option<Pause>,
}

impl End {
    fn of(status: InboxStatus, error: impl Into<String>) -> Self {
        Self { status: status.as_str(), error: error.into(), parked_for: String::new(), pause: None }
    }

    /// Whether it is a dead letter.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.status == InboxStatus::Dead.as_str()
    }
}

/// Books a batch and ends its events, in one transaction. `None` for an event that had ended before.
///
/// # Errors
/// When the store cannot be read or written; then nothing was done.
pub async fn book(booking: Booking<'_>, items: &[&Item]) -> Result<Vec<Option<End>>> {
    let mut tx = booking.store.begin_write().await?;
    let keys: Vec<&EventKey> = items.iter().map(|item| &item.claimed.key).collect();
    let open = work::open(&mut tx, &keys).await?;
    let mut ends: Vec<Option<End>> = vec![None; items.len()];
    let mut deeds: Vec<(usize, &Deed)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(attempts) = open.get(&item.claimed.key) else { continue };
        // A person had it tried again meanwhile: how this attempt failed says nothing of that.
        if *attempts < item.claimed.attempts && !matches!(item.plan, Plan::Do(_)) {
            continue;
        }
        match &item.plan {
            Plan::Do(deed) => deeds.push((index, deed)),
            plan => ends[index] = Some(without_deed(booking, &item.claimed, plan)),
        }
    }
    let moved = grounds::moved(&mut tx, &deeds).await?;
    deeds.retain(|(index, _)| !moved.contains(index));
    for index in moved {
        ends[index] = Some(overtaken(booking, &items[index].claimed));
    }
    park(&mut tx, booking, items, &mut deeds, &mut ends).await?;
    let booked = through_the_door(&mut tx, booking, items, &deeds).await?;
    let stood = set_statuses(&mut tx, booking, &deeds, &booked).await?;
    for (index, deed) in &deeds {
        ends[*index] = Some(conclude(booking, &items[*index].claimed, deed, &booked, &stood, *index));
    }
    finish(&mut tx, booking, items, &ends).await?;
    tx.commit().await.context("commit events")?;
    Ok(ends)
}

fn without_deed(booking: Booking<'_>, claimed: &Claimed, plan: &Plan) -> End {
    match plan {
        Plan::Ignore(reason) => End::of(InboxStatus::Ignored, *reason),
        Plan::Bury(error) => End::of(InboxStatus::Dead, error),
        Plan::Wait(error) => waits(booking, claimed, error),
        Plan::Fail(error) => failed(booking, claimed, error),
        Plan::Do(_) => End::of(InboxStatus::Received, ""),
    }
}

/// A failed attempt: the last one buries the event, or the end of its time where it is parked and uses up none.
#[must_use]
pub fn failed(booking: Booking<'_>, claimed: &Claimed, error: &str) -> End {
    let is_last =
        if claimed.is_parked { is_over(booking, claimed) } else { claimed.attempts >= booking.attempts_max };
    End::of(if is_last { InboxStatus::Dead } else { InboxStatus::Received }, error)
}

/// A provider that is down is not the event's fault: only time buries it.
fn waits(booking: Booking<'_>, claimed: &Claimed, error: &str) -> End {
    let is_over = is_over(booking, claimed);
    let status = if is_over { InboxStatus::Dead } else { InboxStatus::Received };
    End { pause: (!is_over).then_some(booking.pause), ..End::of(status, error) }
}

/// Another worker was told something newer: it is due again at once, or like anything that waits where that goes on.
fn overtaken(booking: Booking<'_>, claimed: &Claimed) -> End {
    const AT_ONCE: Pause = Pause { min_us: 0, max_us: 0 };
    let end = waits(booking, claimed, "what it is about changed while it was asked for");
    let tried_us = booking.now_us.saturating_sub(claimed.tried_since_us);
    if end.pause.is_some() && tried_us <= AT_ONCE_MAX_US { End { pause: Some(AT_ONCE), ..end } } else { end }
}

/// Whether it was tried for as long as it may wait. However old it was when it was first tried, or tried again for a
/// person: time in which nobody worked is not its own.
fn is_over(booking: Booking<'_>, claimed: &Claimed) -> bool {
    // A clock that was far behind at the first attempt was not before the receipt.
    let since_us = claimed.tried_since_us.max(claimed.received_at_us);
    booking.now_us.saturating_sub(since_us) > booking.park_max_us
}

/// Puts aside what gives money back that was never booked, unless this very batch books it.
async fn park(
    tx: &mut Transaction<'_, Any>,
    booking: Booking<'_>,
    items: &[&Item],
    deeds: &mut Vec<(usize, &Deed)>,
    ends: &mut [Option<End>],
) -> Result<()> {
    let mut needed: BTreeSet<&str> = BTreeSet::new();
    for (_, deed) in deeds.iter() {
        if let Some(charge) = &deed.after_credit_of {
            needed.extend([charge.as_str(), &deed.root_id]);
        }
    }
    if needed.is_empty() {
        return Ok(());
    }
    let credits: BTreeSet<(_, String)> = ledger::entries_by_object(tx, &needed)
        .await?
        .into_iter()
        .filter(|entry| entry.kind == EffectKind::Credit)
        .map(|entry| (entry.key.scope, entry.object_id))
        .collect();
    let requested: BTreeSet<EffectKey> = deeds
        .iter()
        .flat_map(|(_, deed)| &deed.requests)
        .filter(|request| request.effect.kind == EffectKind::Credit)
        .map(|request| request.key.clone())
        .collect();
    deeds.retain(|(index, deed)| {
        let Some(charge) = &deed.after_credit_of else { return true };
        let claimed = &items[*index].claimed;
        let scope = &claimed.key.scope;
        let credit = EffectKey::of(scope, EffectKind::Credit, charge);
        let is_booked =
            [charge, &deed.root_id].into_iter().any(|id| credits.contains(&(scope.clone(), id.clone())));
        if is_booked || requested.contains(&credit) {
            return true;
        }
        let error = format!("{} is not booked", credit.key);
        ends[*index] = Some(if is_over(booking, claimed) {
            End::of(InboxStatus::Dead, error)
        } else {
            End { parked_for: credit.key, ..End::of(InboxStatus::Parked, error) }
        });
        false
    });
    Ok(())
}

/// What became of a deed's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stood {
    verdict: Verdict,
    /// The status that stands now.
    status: Option<Status>,
    /// Whether it was changed after the provider was asked.
    moved: bool,
}

async fn set_statuses(
    tx: &mut Transaction<'_, Any>,
    booking: Booking<'_>,
    deeds: &[(usize, &Deed)],
    booked: &Booked,
) -> Result<BTreeMap<usize, Stood>> {
    let is_refused = |index: &usize| booked.get(index).into_iter().flatten().any(Answer::is_refusal);
    let mut speaking: Vec<(usize, &Deed)> =
        deeds.iter().filter(|(index, deed)| deed.word.is_some() && !is_refused(index)).copied().collect();
    // Events of one payment that were claimed together count in the provider's order, not in that of arrival.
    speaking.sort_by_key(|(index, deed)| (deed.created_us, *index));
    let candidates = state_ids(tx, &speaking).await?;
    let wanted: BTreeSet<ObjectKey> = candidates.values().flatten().cloned().collect();
    let mut current = states::states(tx, &wanted).await?;
    let mut writes: BTreeMap<ObjectKey, State> = BTreeMap::new();
    let mut stood: BTreeMap<usize, (ObjectKey, Stood)> = BTreeMap::new();
    for (index, deed) in speaking {
        let (Some((said, source)), Some(ids)) = (deed.word, candidates.get(&index)) else { continue };
        let Some(key) = ids.iter().find(|key| current.contains_key(*key)).or(ids.first()).cloned() else {
            continue;
        };
        let known = current.get(&key);
        let moved = matches!((source, known), (Source::Fetched(began_us), Some(known)) if known.updated_at_us >= began_us);
        let freshness = freshness(deed, source, known);
        let fetched = state::Fetched {
            status: said.status,
            refunded_minor: said.refunded_minor,
            provider_time_us: said.at_us,
        };
        let verdict = judge(known, &fetched, freshness, deed.created_us);
        if verdict == Verdict::Write {
            let (updated_at_us, changed_by) = match source {
                Source::Fetched(began_us) => (began_us, BY_FETCH),
                Source::Event => (booking.now_us, BY_EVENT),
            };
            let state = State {
                status: said.status,
                refunded_minor: said.refunded_minor.or(known.and_then(|known| known.refunded_minor)),
                provider_time_us: said.at_us.max(deed.created_us),
                // A later word is never written as an earlier change.
                updated_at_us: updated_at_us.max(known.map_or(i64::MIN, |known| known.updated_at_us)),
                changed_by: changed_by.to_owned(),
            };
            current.insert(key.clone(), state.clone());
            writes.insert(key.clone(), state);
        }
        let status = current.get(&key).map(|state| state.status);
        stood.insert(index, (key, Stood { verdict, status, moved }));
    }
    let written = states::set_states(tx, &writes).await?;
    anyhow::ensure!(written.len() == writes.len(), "a status was changed while it was judged");
    // Where several events of one payment were judged, what counts is the status that stands at the end.
    let at_end = |(key, stood): (ObjectKey, Stood)| Stood {
        status: current.get(&key).map(|state| state.status).or(stood.status),
        ..stood
    };
    Ok(stood.into_iter().map(|(index, found)| (index, at_end(found))).collect())
}

/// Whether a word may also take one of the named steps back.
fn freshness(deed: &Deed, source: Source, known: Option<&State>) -> Freshness {
    let is_newer = known.is_none_or(|known| match source {
        Source::Fetched(began_us) => known.updated_at_us < began_us,
        Source::Event if known.changed_by == BY_EVENT => known.provider_time_us < deed.created_us,
        Source::Event => known.updated_at_us < deed.created_us,
    });
    if is_newer { Freshness::JustNow } else { Freshness::AsOfRun }
}

/// The ids under which each deed's status may stand, the most exact first.
async fn state_ids(
    tx: &mut Transaction<'_, Any>,
    speaking: &[(usize, &Deed)],
) -> Result<BTreeMap<usize, Vec<ObjectKey>>> {
    let roots: BTreeSet<&str> = speaking.iter().map(|(_, deed)| &*deed.root_id).collect();
    let aliases = states::aliases(tx, &roots).await?;
    let mut candidates = BTreeMap::new();
    for (index, deed) in speaking {
        let scope = &deed.scope;
        let root: ObjectKey = (scope.clone(), deed.root_id.clone());
        let others = aliases.get(&root).into_iter().flatten().map(|alias| (scope.clone(), alias.clone()));
        candidates.insert(*index, [root.clone()].into_iter().chain(others).collect());
    }
    Ok(candidates)
}

fn conclude(
    booking: Booking<'_>,
    claimed: &Claimed,
    deed: &Deed,
    booked: &Booked,
    stood: &BTreeMap<usize, Stood>,
    index: usize,
) -> End {
    let answers = booked.get(&index).map(Vec::as_slice).unwrap_or_default();
    if let Some(entry_id) = answers.iter().find_map(|answer| match answer {
        Answer::ConflictsWithApplied { entry_id } => Some(entry_id),
        _ => None,
    }) {
        return End::of(InboxStatus::Dead, format!("another amount or currency is booked as {entry_id}"));
    }
    if let Some(end) = answers.iter().find_map(|answer| reversed(booking, claimed, deed, answer)) {
        return end;
    }
    let has_booked = answers.iter().any(|answer| *answer != Answer::AlreadyApplied);
    let stood = stood.get(&index);
    match stood.map(|stood| (stood.verdict, stood.moved)) {
        // Its money is booked, and is found booked when its status is judged again.
        Some((Verdict::Refused, true)) if has_booked => {
            return waits(booking, claimed, "its status changed while it was asked for");
        }
        _ if has_booked => return End::of(InboxStatus::Applied, ""),
        Some((Verdict::ManualOverride, _)) => return End::of(InboxStatus::Superseded, "manual_override"),
        Some((Verdict::Refused, true)) => {
            return waits(booking, claimed, "its status changed while it was asked for");
        }
        _ => {}
    }
    if let (Some(kind), true) = (deed.kind, answers.is_empty()) {
        let error = format!("the provider has no {kind} of {} any more", deed.object_id);
        return End::of(InboxStatus::Superseded, error);
    }
    let stands = stood.and_then(|stood| stood.status);
    let is_older = matches!((deed.own_status, stands), (Some(own), Some(stands)) if own < stands);
    let is_refused = stood.is_some_and(|stood| stood.verdict == Verdict::Refused);
    match (answers.is_empty(), stands) {
        // Nothing of it stands in the books, undone now or never booked.
        (true, None) if deed.undoes.is_some() => End::of(InboxStatus::Applied, ""),
        (true, None) => End::of(InboxStatus::Ignored, "nothing_to_apply"),
        _ if is_older || is_refused => End::of(InboxStatus::Superseded, "a newer status stands"),
        _ => End::of(InboxStatus::Applied, ""),
    }
}

/// How an event ends whose effect was booked and taken back: what the provider says now is not in the books, and
/// its key is used up.
fn reversed(booking: Booking<'_>, claimed: &Claimed, deed: &Deed, answer: &Answer) -> Option<End> {
    let Answer::Reversed { entry_id, occurred_at_us, applied_at_us } = answer else { return None };
    Some(match deed.asked_us {
        // It was taken back while the provider was asked.
        Some(asked_us) if *applied_at_us >= asked_us => {
            waits(booking, claimed, &format!("{entry_id} was taken back while it was asked for"))
        }
        None if deed.created_us < *occurred_at_us => {
            End::of(InboxStatus::Superseded, format!("{entry_id} was taken back later"))
        }
        _ => End::of(
            InboxStatus::Dead,
            format!(
                "{entry_id} was booked and taken back, and its effect is announced as standing: a person decides"
            ),
        ),
    })
}

async fn finish(
    tx: &mut Transaction<'_, Any>,
    booking: Booking<'_>,
    items: &[&Item],
    ends: &[Option<End>],
) -> Result<()> {
    let mut groups: BTreeMap<&End, Vec<&EventKey>> = BTreeMap::new();
    for (item, end) in items.iter().zip(ends) {
        if let Some(end) = end {
            groups.entry(end).or_default().push(&item.claimed.key);
        }
    }
    let look_us = i64::try_from(PARKED_LOOK.as_micros()).unwrap_or(i64::MAX);
    for (end, mut keys) in groups {
        keys.sort();
        let Ok(status) = end.status.parse::<InboxStatus>() else { continue };
        if let Some(pause) = end.pause {
            work::wait(tx, &keys, &end.error, booking.now_us, pause).await?;
            continue;
        }
        if status == InboxStatus::Received {
            work::fail(tx, &keys, &end.error).await?;
            continue;
        }
        let is_parked = status == InboxStatus::Parked;
        let due_us =
            if is_parked { booking.now_us.saturating_add(look_us.min(booking.park_max_us)) } else { 0 };
        let ending = Ending { status, error: &end.error, parked_for: &end.parked_for, due_us };
        work::finish(tx, &keys, ending, booking.now_us).await?;
    }
    Ok(())
}
