//! The order in which the rules are asked, so that one root cause gives one finding.
//!
//! Units first (money), then statuses (which often follow from a unit), then events whose absence
//! has no money, then notes. The one thing to get right: a rule further down never sees what a rule
//! further up has explained.

use super::{
    Action, Finding, Group, Kind, Unit, amount_mismatch, conflicting_event, currency_mismatch,
    duplicate_effect, forbidden_transition, incomplete_fields, misattributed_effect, missed_event,
    missing_effect, needs_review, orphan_effect, stale_state, timing_difference, unapplied_event,
    unknown_shape, wrong_scope,
};
use crate::record::{
    EffectKind, InboxStatus, LocalState, Note, NoteKind, ProviderEvent, Scope, Status, Tracks, Window,
};
use std::collections::BTreeSet;

/// What the rules may know besides the group.
#[derive(Clone, Debug)]
pub struct Context {
    /// The run's window.
    pub window: Window,
    /// An inbox row received after this instant and not processed yet is in flight, Unix µs.
    pub pending_since_us: i64,
    /// Whether events were listed and the inbox was read; without that leg no event is judged.
    pub has_event_leg: bool,
    /// Whether the provider was asked for the very ids of what it seems not to have; if not, notes say so.
    pub provider_was_asked: bool,
    /// What nobody could read: its absence says nothing.
    pub unread: Unread,
}

/// What was neither asked for nor read with its list: offline, or without the permission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Kinds whose objects could not be read at all.
    pub kinds: BTreeSet<EffectKind>,
    /// Groups of which something that the books name could not be read.
    pub roots: BTreeSet<String>,
}

impl Unread {
    /// Nothing: all that the books name was read, or asked for.
    pub const NONE: Self = Self { kinds: BTreeSet::new(), roots: BTreeSet::new() };
}

/// Money that is too young to judge: it explains a difference without being a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InFlight {
    /// Scope.
    pub scope: Scope,
    /// Currency.
    pub currency: String,
    /// Kind.
    pub kind: EffectKind,
    /// Signed minor units, `provider − local` in the window.
    pub minor: i64,
}

/// A local status row that disagrees with the provider, and everything that may explain it.
pub(super) struct StatusBreak<'a> {
    pub(super) scope: &'a Scope,
    pub(super) root_id: &'a str,
    pub(super) group: &'a Group,
    pub(super) units: &'a [Unit],
    pub(super) state: &'a LocalState,
    /// The provider's status and the time of that word, Unix µs.
    pub(super) expected: Status,
    pub(super) at_us: i64,
    pub(super) swapped: Option<stale_state::Swapped>,
    /// Parts of the payment that moved no money.
    pub(super) idle_parts: &'a BTreeSet<String>,
}

impl StatusBreak<'_> {
    /// A finding on the local row, with both statuses.
    pub(super) fn finding(&self, kind: Kind) -> Finding {
        Finding {
            expected_state: Some(self.expected),
            found_state: Some(self.state.status),
            ..Finding::on_object(kind, self.scope, self.root_id, &self.state.object_id, self.at_us)
        }
    }
}

/// What was seen and is no finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Effects and events too young to judge.
    pub in_flight: u64,
    /// Wanted events that never came although everything that they stand for is booked.
    pub missed_without_consequence: u64,
    /// Payments whose effects were applied in another order and still ended right.
    pub harmless_out_of_order: u64,
    /// What the books have of objects that nobody could read: their absence was not judged.
    pub not_judged: u64,
}

impl Counted {
    /// Adds another group's counts.
    pub fn add(&mut self, other: Self) {
        self.in_flight += other.in_flight;
        self.missed_without_consequence += other.missed_without_consequence;
        self.harmless_out_of_order += other.harmless_out_of_order;
        self.not_judged += other.not_judged;
    }
}

/// What the rules say of one group.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// Findings.
    pub findings: Vec<Finding>,
    /// Counts.
    pub counted: Counted,
    /// Money in flight.
    pub in_flight: Vec<InFlight>,
    /// Whether what is found, or in flight, explains a status that lags.
    pub explains_state: bool,
}

/// Judges one group, whole and over all time. Units that do not touch the window are left alone.
#[must_use]
pub fn judge(context: &Context, scope: &Scope, root_id: &str, mut group: Group) -> Judgement {
    let idle_parts = idle_parts(&group);
    group.normalise(root_id);
    group.sort();
    let mut judgement = Judgement::default();
    let units = group.units(scope, root_id, |at_us| context.window.contains(at_us));
    let mut explains_state = group.is_explained;
    for unit in units.iter().filter(|unit| unit.touches_window) {
        explains_state |= judge_unit(context, unit, &mut judgement);
    }
    let state_findings = judgement.findings.len();
    if !explains_state {
        judge_states(
            context,
            scope,
            root_id,
            &Sides { group: &group, units: &units, idle_parts: &idle_parts },
            &mut judgement,
        );
    }
    let has_state_finding = judgement.findings.len() > state_findings;
    if context.has_event_leg {
        judge_other_events(context, root_id, &group, has_state_finding || explains_state, &mut judgement);
        judgement.findings.extend(conflicting_event::of_group(scope, root_id, &group));
    }
    for note in group.notes.iter().filter(|note| context.window.contains(note.at_us)) {
        judgement.findings.push(from_note(note));
    }
    merge_same_breaks(&mut judgement.findings);
    judgement.explains_state = explains_state;
    if group.needs_person {
        let findings = judgement.findings.iter_mut();
        findings.filter(|finding| is_of_payment(finding)).for_each(leave_to_person);
    }
    judgement
}

/// About a payment's money or status, and not about an event that moves neither.
const fn is_of_payment(finding: &Finding) -> bool {
    finding.effect.is_some() || finding.expected_state.is_some()
}

fn leave_to_person(finding: &mut Finding) {
    if finding.action != Action::None {
        finding.action = Action::Review;
    }
}

/// The finding that a note on a record stands for.
#[must_use]
pub fn from_note(note: &Note) -> Finding {
    match note.kind {
        NoteKind::UnknownShape => unknown_shape::unknown_shape(note),
        NoteKind::IncompleteFields => incomplete_fields::incomplete_fields(note),
        NoteKind::NeedsReview => needs_review::from_note(note),
        NoteKind::WrongScope => wrong_scope::from_note(note),
    }
}

/// Judges one unit; true when what it finds also explains a status that lags.
fn judge_unit(context: &Context, unit: &Unit, judgement: &mut Judgement) -> bool {
    if let Some(finding) = misattributed_effect::misattributed_effect(unit) {
        judgement.findings.push(finding);
        return true;
    }
    if unit.is_agreed() {
        if unit.has_local() {
            count_missed_without_consequence(context, unit, judgement);
        }
        judgement.findings.extend(timing_difference::timing_difference(context, unit));
        return false;
    }
    if !unit.has_local() {
        if is_in_flight(context, unit) {
            judgement.counted.in_flight += 1;
            push_in_flight(unit, judgement);
            return true;
        }
        let finding = unapplied_event::unapplied_effect(context, unit)
            .or_else(|| missed_event::missed_effect(context, unit))
            .unwrap_or_else(|| missing_effect::missing_effect(unit));
        judgement.findings.push(finding);
        return true;
    }
    count_missed_without_consequence(context, unit, judgement);
    if !unit.has_provider() {
        if context.unread.roots.contains(&unit.root_id) || context.unread.kinds.contains(&unit.kind) {
            judgement.counted.not_judged += 1;
        } else {
            judgement.findings.extend(orphan_effect::orphan_effects(context, unit));
        }
        return true;
    }
    let mixed = currency_mismatch::currency_mismatch(unit);
    if !mixed.is_empty() {
        judgement.findings.extend(mixed);
        return false;
    }
    let finding = duplicate_effect::duplicate_effect(unit)
        .or_else(|| forbidden_transition::capture_exceeds_authorisation(unit))
        .or_else(|| amount_mismatch::amount_mismatch(unit));
    judgement.findings.extend(finding);
    false
}

/// Evidence, not only youth: an event of it was received a moment ago, or the provider still retries one
/// and the inbox has none that should have booked it.
fn is_in_flight(context: &Context, unit: &Unit) -> bool {
    let held = || unit.announcements.iter().filter_map(|said| said.inbox);
    let just_received =
        held().any(|(status, at_us)| status == InboxStatus::Received && at_us > context.pending_since_us);
    let still_retried =
        || unit.announcements.iter().any(|said| said.inbox.is_none() && is_retried(&said.event));
    let is_evidence = |(status, _)| !matches!(status, InboxStatus::Superseded | InboxStatus::Ignored);
    context.has_event_leg && (just_received || (still_retried() && !held().any(is_evidence)))
}

fn is_retried(event: &ProviderEvent) -> bool {
    event.wanted && !event.settled
}

fn push_in_flight(unit: &Unit, judgement: &mut Judgement) {
    for (currency, minor) in unit.explains() {
        judgement.in_flight.push(InFlight { scope: unit.scope.clone(), currency, kind: unit.kind, minor });
    }
}

fn count_missed_without_consequence(context: &Context, unit: &Unit, judgement: &mut Judgement) {
    if !context.has_event_leg {
        return;
    }
    let missing = unit.announcements.iter().filter(|said| {
        said.inbox.is_none() && said.event.wanted && context.window.contains(said.event.created_us)
    });
    for said in missing {
        if said.event.settled {
            judgement.counted.missed_without_consequence += 1;
        } else {
            judgement.counted.in_flight += 1;
        }
    }
}

/// The refunds and disputes that no effect belongs to. Only before normalising are ids what they were.
fn idle_parts(group: &Group) -> BTreeSet<String> {
    let moved: BTreeSet<&str> =
        group.provider_effects.iter().map(|effect| effect.object_id.as_str()).collect();
    group.parts.iter().filter(|id| !moved.contains(id.as_str())).cloned().collect()
}

/// What the statuses of a payment are judged by.
struct Sides<'a> {
    group: &'a Group,
    units: &'a [Unit],
    idle_parts: &'a BTreeSet<String>,
}

fn judge_states(context: &Context, scope: &Scope, root_id: &str, sides: &Sides, judgement: &mut Judgement) {
    let Sides { group, units, idle_parts } = *sides;
    let swapped = stale_state::swapped_pair(units);
    let events = missed_event::StateEvents::of(context, group, root_id);
    let mut is_harmless = swapped.is_some();
    // Objects do not say when they changed last; an event of the payment in the window does.
    let has_moved = group.provider_states.iter().any(|said| context.window.contains(said.at_us))
        || group
            .provider_events
            .iter()
            .any(|event| event.root_id == root_id && context.window.contains(event.created_us));
    for state in &group.local_states {
        if !has_moved && !context.window.contains(state.updated_at_us) {
            continue;
        }
        let Some((expected, at_us)) = group.provider_status() else {
            if context.unread.roots.contains(root_id) {
                judgement.counted.not_judged += 1;
            } else if group.provider_effects.is_empty() && units.is_empty() {
                judgement.findings.push(needs_review::unknown_object(scope, root_id, state));
            }
            continue;
        };
        let is_given_up = state.status > expected && state.status <= Status::Canceled;
        if state.status == expected || is_given_up {
            let has_refund_finding =
                judgement.findings.iter().any(|finding| finding.effect == Some(EffectKind::Refund));
            if !has_refund_finding {
                judgement.findings.extend(amount_mismatch::refunded_total(scope, root_id, group, state));
            }
            continue;
        }
        is_harmless = false;
        let lag = StatusBreak {
            scope,
            root_id,
            group,
            units,
            state,
            expected,
            at_us,
            swapped: swapped.clone(),
            idle_parts,
        };
        if state.changed_by == "operator" && state.updated_at_us > at_us {
            judgement.findings.push(needs_review::manual_override(&lag));
            continue;
        }
        if events.is_in_flight {
            judgement.counted.in_flight += 1;
            continue;
        }
        if group.is_mixed {
            judgement.findings.push(needs_review::payments_differ(&lag));
            continue;
        }
        judgement.findings.push(if stale_state::is_behind(&lag) {
            unapplied_event::unapplied_state(&lag, &events)
                .or_else(|| missed_event::missed_state(&lag, &events))
                .or_else(|| forbidden_transition::went_back(&lag))
                .unwrap_or_else(|| stale_state::stale_state(&lag))
        } else {
            needs_review::local_ahead(&lag)
        });
    }
    if is_harmless {
        judgement.counted.harmless_out_of_order += 1;
    }
}

/// Events that move no tracked money: a status that is right anyway is only counted; what cannot be
/// looked up is found with little weight.
fn judge_other_events(
    context: &Context,
    root_id: &str,
    group: &Group,
    is_explained: bool,
    judgement: &mut Judgement,
) {
    let inbox = group.inbox();
    for event in group.provider_events.iter().filter(|event| event.root_id == root_id) {
        let is_absent = event.wanted && !inbox.contains_key(event.event_id.as_str());
        if !is_absent || !context.window.contains(event.created_us) {
            continue;
        }
        match event.tracks {
            // Its unit has answered for it.
            Tracks::Effect(_) => {}
            Tracks::State if is_explained || !event.settled => {}
            Tracks::State if !group.local_states.is_empty() => {
                judgement.counted.missed_without_consequence += 1;
            }
            Tracks::Nothing if !event.settled => judgement.counted.in_flight += 1,
            Tracks::State | Tracks::Nothing => {
                judgement.findings.push(missed_event::missed_other(event, root_id));
            }
        }
    }
}

/// Findings that share an id are one break: their events, rows and explanations are joined.
fn merge_same_breaks(findings: &mut Vec<Finding>) {
    findings.sort_by_cached_key(Finding::sort_key);
    let mut merged: Vec<Finding> = Vec::with_capacity(findings.len());
    for finding in findings.drain(..) {
        match merged.last_mut() {
            Some(last) if last.id() == finding.id() => {
                last.event_ids.extend(finding.event_ids);
                last.event_ids.sort();
                last.event_ids.dedup();
                for row in finding.effect_ids {
                    if !last.effect_ids.contains(&row) {
                        last.effect_ids.push(row);
                    }
                }
            }
            _ => merged.push(finding),
        }
    }
    *findings = merged;
}
