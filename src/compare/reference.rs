//! What comparing means, written for reading instead of for size: everything in memory, group by
//! group. The engine must answer exactly this.

use super::{RootKey, Sums, Totals};
use crate::record::{
    EffectKind, EventKey, Fact, InboxEvent, InboxStatus, LocalEffect, LocalState, ProviderEffect,
    ProviderEvent, ProviderState, Scope, Window,
};
use std::collections::{BTreeMap, BTreeSet};

/// The answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) roots: BTreeSet<RootKey>,
    pub(super) inbox_only: BTreeSet<EventKey>,
    pub(super) totals: Totals,
}

#[derive(Default)]
struct EventGroup<'a> {
    provider: Vec<&'a ProviderEvent>,
    inbox: Vec<&'a InboxEvent>,
    local: Vec<&'a LocalEffect>,
}

#[derive(Default)]
struct RootGroup<'a> {
    notes: usize,
    provider: Vec<&'a ProviderEffect>,
    local: Vec<&'a LocalEffect>,
    provider_states: Vec<&'a ProviderState>,
    local_states: Vec<&'a LocalState>,
}

/// Compares facts.
pub(super) fn compare(facts: &[Fact], covered: &BTreeMap<Scope, Vec<Window>>) -> Answer {
    let mut answer = Answer::default();
    let mut events: BTreeMap<(Scope, &str), EventGroup<'_>> = BTreeMap::new();
    let mut roots: BTreeMap<(Scope, &str), RootGroup<'_>> = BTreeMap::new();
    let mut intents: BTreeMap<(Scope, &str), Vec<&str>> = BTreeMap::new();
    for fact in facts {
        let counts = &mut answer.totals.counts;
        match fact {
            Fact::ProviderEvent(event) => {
                counts.provider_events += 1;
                events.entry((event.scope.clone(), &event.event_id)).or_default().provider.push(event);
            }
            Fact::InboxEvent(event) => {
                counts.inbox_events += 1;
                events.entry((event.scope.clone(), &event.event_id)).or_default().inbox.push(event);
            }
            Fact::ProviderEffect(effect) => {
                counts.provider_effects += 1;
                if effect.kind == EffectKind::Credit && !effect.intent.is_empty() {
                    intents.entry((effect.scope.clone(), &effect.intent)).or_default().push(&effect.root_id);
                }
                roots.entry((effect.scope.clone(), &effect.root_id)).or_default().provider.push(effect);
            }
            Fact::LocalEffect(effect) => {
                counts.local_effects += 1;
                if !effect.event_id.is_empty() {
                    events.entry((effect.scope.clone(), &effect.event_id)).or_default().local.push(effect);
                }
                roots.entry((effect.scope.clone(), &effect.root_id)).or_default().local.push(effect);
            }
            Fact::ProviderState(state) => {
                counts.provider_states += 1;
                roots.entry((state.scope.clone(), &state.root_id)).or_default().provider_states.push(state);
            }
            Fact::LocalState(state) => {
                counts.local_states += 1;
                roots.entry((state.scope.clone(), &state.root_id)).or_default().local_states.push(state);
            }
            Fact::Alias(_) => counts.aliases += 1,
            Fact::Note(note) => {
                counts.notes += 1;
                roots.entry((note.scope.clone(), &note.root_id)).or_default().notes += 1;
            }
        }
        add_sums(fact, &mut answer.totals.sums);
    }
    for ((scope, event_id), group) in &events {
        judge_event(scope, event_id, group, covered.get(scope), &mut answer);
    }
    for ((scope, root_id), group) in roots {
        let key = RootKey { scope, root_id: root_id.to_owned() };
        let is_state_unseen = !group.provider_states.is_empty() && group.local_states.is_empty();
        if is_state_unseen || !is_clean(root_id, &group) {
            answer.roots.insert(key);
        }
    }
    for ((scope, _), of_intent) in intents.into_iter().filter(|(_, of_intent)| of_intent.len() > 1) {
        let keys = of_intent.iter().map(|root| RootKey { scope: scope.clone(), root_id: (*root).to_owned() });
        answer.roots.extend(keys);
    }
    answer
}

fn add_sums(fact: &Fact, sums: &mut BTreeMap<(Scope, String, EffectKind), Sums>) {
    match fact {
        Fact::ProviderEffect(effect) if effect.in_window => {
            let key = (effect.scope.clone(), effect.currency.clone(), effect.kind);
            sums.entry(key).or_default().provider_minor += i128::from(effect.amount_minor);
        }
        Fact::LocalEffect(effect) if effect.in_window => {
            let key = (effect.scope.clone(), effect.currency.clone(), effect.kind);
            sums.entry(key).or_default().local_minor += i128::from(effect.amount_minor);
        }
        _ => {}
    }
}

fn judge_event(
    scope: &Scope,
    event_id: &str,
    group: &EventGroup<'_>,
    covered: Option<&Vec<Window>>,
    answer: &mut Answer,
) {
    let is_covered = |at: i64| covered.is_none_or(|ranges| ranges.iter().any(|range| range.contains(at)));
    let is_later = |at: i64| covered.is_none_or(|ranges| ranges.iter().any(|range| range.from_us <= at));
    let mut suspect = |root: &str| {
        answer.roots.insert(RootKey { scope: scope.clone(), root_id: root.to_owned() });
    };
    let is_repeated = group.inbox.len() > 1;
    let is_unknown = is_repeated || group.inbox.iter().any(|row| is_covered(row.received_at_us));
    if group.provider.is_empty() {
        for row in group.local.iter().filter(|row| is_unknown || is_later(row.applied_at_us)) {
            suspect(&row.root_id);
        }
        if is_unknown {
            answer.inbox_only.insert(EventKey { scope: scope.clone(), event_id: event_id.to_owned() });
        }
        return;
    }
    let is_done = |row: &&InboxEvent| {
        matches!(row.status, InboxStatus::Applied | InboxStatus::Ignored | InboxStatus::Superseded)
    };
    let arrived = group.inbox.len() == 1 && group.inbox.iter().all(is_done);
    let names_another = group.local.iter().any(|row| row.root_id != group.provider[0].root_id);
    let is_wanted = group.provider.iter().any(|event| event.wanted);
    if group.provider.len() > 1 || is_repeated || names_another || is_wanted && !arrived {
        group.provider.iter().for_each(|event| suspect(&event.root_id));
    }
    // With several listings which root is right cannot be told: the smallest one stands for the event.
    let root = group.provider.iter().map(|event| (event.wanted, &event.root_id)).min().unwrap().1;
    group.local.iter().filter(|row| row.root_id != *root).for_each(|row| suspect(&row.root_id));
}

fn is_clean(root_id: &str, group: &RootGroup<'_>) -> bool {
    let is_plain =
        |row: &&LocalEffect| row.in_window && row.corrects_effect_id.is_empty() && row.amount_minor > 0;
    if group.notes > 0
        || !group.local.iter().all(is_plain)
        || !group.provider.iter().all(|effect| effect.in_window && effect.amount_minor > 0)
    {
        return false;
    }
    let charges: Vec<&str> = group
        .provider
        .iter()
        .filter(|effect| effect.kind == EffectKind::Credit)
        .map(|effect| effect.object_id.as_str())
        .collect();
    let mut pairs: Vec<(&ProviderEffect, &LocalEffect)> = Vec::new();
    for kind in EffectKind::ALL {
        let provider: Vec<_> = group.provider.iter().filter(|effect| effect.kind == kind).collect();
        let local: Vec<_> = group.local.iter().filter(|row| row.kind == kind).collect();
        if provider.len() != local.len() || kind == EffectKind::Credit && provider.len() > 1 {
            return false;
        }
        for effect in &provider {
            let is_unit = |row: &&&&LocalEffect| row.object_id == effect.object_id;
            let names_payment = |row: &&&&LocalEffect| {
                let names_charge = kind != EffectKind::Credit && charges.contains(&row.object_id.as_str());
                provider.len() == 1 && (row.object_id == root_id || names_charge)
            };
            let of_unit: Vec<_> = local
                .iter()
                .filter(|row| is_unit(row) || names_payment(row))
                .filter(|row| row.currency == effect.currency)
                .collect();
            let same = provider
                .iter()
                .filter(|other| (&other.object_id, &other.currency) == (&effect.object_id, &effect.currency));
            if of_unit.len() != 1 || same.count() != 1 || of_unit[0].amount_minor != effect.amount_minor {
                return false;
            }
            pairs.push((effect, of_unit[0]));
        }
    }
    let is_swapped = pairs.iter().any(|(first, booked_first)| {
        pairs.iter().any(|(then, booked_then)| {
            (first.occurred_at_us < then.occurred_at_us || first.kind < then.kind)
                && booked_first.applied_at_us > booked_then.applied_at_us
        })
    });
    !is_swapped && states_agree(group)
}

fn states_agree(group: &RootGroup<'_>) -> bool {
    let credits: i128 = group
        .local
        .iter()
        .filter(|row| row.kind == EffectKind::Credit)
        .map(|row| i128::from(row.amount_minor))
        .sum();
    let mut authorized = group.provider_states.iter().filter_map(|state| state.authorized_minor);
    if authorized.any(|minor| credits > i128::from(minor)) {
        return false;
    }
    let status = group.provider_states.iter().map(|state| state.status).max();
    let words: Vec<i64> = group.provider_states.iter().filter_map(|state| state.refunded_minor).collect();
    let refunds: Vec<i64> = group
        .provider
        .iter()
        .filter(|effect| effect.kind == EffectKind::Refund)
        .map(|effect| effect.amount_minor)
        .collect();
    let total = |minors: &[i64]| minors.iter().map(|minor| i128::from(*minor)).sum::<i128>();
    group.local_states.iter().all(|state| {
        let Some(minor) = state.refunded_minor.map(i128::from) else {
            return Some(state.status) == status;
        };
        let largest = words.iter().copied().max().map(|largest| i128::from(largest.max(0)));
        let fits_words = largest.is_none_or(|largest| largest == minor && total(&words) == minor);
        let fits_refunds = (!words.is_empty() && refunds.is_empty()) || total(&refunds) == minor;
        Some(state.status) == status && fits_words && fits_refunds
    })
}
