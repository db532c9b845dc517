//! The engine against the rules: what it calls clean, they have nothing to say about.
//!
//! Groups are put together as `gather/whole.rs` does it, from the same facts that the engine sees.

use super::tests::random_facts;
use super::{Comparer, RootKey};
use crate::config::CompareSettings;
use crate::findings::{Context, Counted, Group, Intents, Unread, judge};
use crate::record::{EffectKind, Fact, LocalEffect, ProviderEvent, Scope, Window};
use std::collections::{BTreeMap, BTreeSet};

const CONTEXT: Context = Context {
    window: Window { from_us: 0, until_us: 10_000 },
    pending_since_us: 1_005,
    has_event_leg: true,
    provider_was_asked: true,
    unread: Unread::NONE,
};

/// As the local rows come from `gather/local.rs`: a known id that is no anchor becomes the root.
fn resolved(mut fact: Fact) -> Fact {
    if let Fact::LocalEffect(row) = &mut fact {
        let anchor = match row.kind {
            EffectKind::Credit | EffectKind::Fee => "ch_",
            EffectKind::Refund => "re_",
            _ => "dp_",
        };
        let is_part = row.object_id.starts_with("re_") || row.object_id.starts_with("dp_");
        if !is_part && !row.object_id.starts_with(anchor) && row.object_id != row.root_id {
            row.object_id.clone_from(&row.root_id);
        }
        row.in_window = CONTEXT.window.contains(row.applied_at_us);
    }
    if let Fact::ProviderEffect(effect) = &mut fact {
        effect.in_window = CONTEXT.window.contains(effect.occurred_at_us);
    }
    fact
}

fn groups(facts: &[Fact]) -> BTreeMap<(Scope, String), Group> {
    let mut groups: BTreeMap<(Scope, String), Group> = BTreeMap::new();
    let mut events: BTreeMap<(Scope, String), Vec<ProviderEvent>> = BTreeMap::new();
    let mut rows: BTreeSet<LocalEffect> = BTreeSet::new();
    for fact in facts {
        match fact.clone() {
            Fact::ProviderEvent(event) => {
                events.entry((event.scope.clone(), event.event_id.clone())).or_default().push(event.clone());
                groups
                    .entry((event.scope.clone(), event.root_id.clone()))
                    .or_default()
                    .provider_events
                    .push(event);
            }
            Fact::ProviderEffect(effect) => {
                let group = groups.entry((effect.scope.clone(), effect.root_id.clone())).or_default();
                group.provider_effects.push(effect);
            }
            Fact::ProviderState(state) => {
                groups
                    .entry((state.scope.clone(), state.root_id.clone()))
                    .or_default()
                    .provider_states
                    .push(state);
            }
            Fact::LocalState(state) => {
                groups
                    .entry((state.scope.clone(), state.root_id.clone()))
                    .or_default()
                    .local_states
                    .push(state);
            }
            Fact::Note(note) => {
                groups.entry((note.scope.clone(), note.root_id.clone())).or_default().notes.push(note);
            }
            Fact::LocalEffect(row) => {
                groups.entry((row.scope.clone(), row.root_id.clone())).or_default();
                rows.insert(row);
            }
            Fact::InboxEvent(_) | Fact::Alias(_) => {}
        }
    }
    for row in rows {
        let named = events.get(&(row.scope.clone(), row.event_id.clone()));
        for event in named.into_iter().flatten().filter(|_| !row.event_id.is_empty()) {
            let named = groups.entry((row.scope.clone(), event.root_id.clone())).or_default();
            if event.root_id != row.root_id && !named.local_effects.contains(&row) {
                named.local_effects.push(row.clone());
            }
            let own = groups.entry((row.scope.clone(), row.root_id.clone())).or_default();
            if !own.provider_events.contains(event) {
                own.provider_events.push(event.clone());
            }
        }
        groups.entry((row.scope.clone(), row.root_id.clone())).or_default().local_effects.push(row);
    }
    for ((scope, _), group) in &mut groups {
        let ids: BTreeSet<String> =
            group.provider_events.iter().map(|event| event.event_id.clone()).collect();
        for fact in facts {
            match fact {
                Fact::InboxEvent(row) if row.scope == *scope && ids.contains(&row.event_id) => {
                    group.inbox_events.push(row.clone());
                }
                _ => {}
            }
        }
        let objects = group.provider_effects.iter().map(|effect| &effect.object_id);
        let objects: Vec<&String> =
            objects.chain(group.local_effects.iter().map(|row| &row.object_id)).collect();
        let is_part = |id: &&&String| id.starts_with("re_") || id.starts_with("dp_");
        group.parts = objects.iter().filter(is_part).map(|id| (*id).clone()).collect();
    }
    groups
}

#[test]
fn the_rules_have_nothing_to_say_about_what_is_called_clean() {
    let (mut judged_count, mut suspicious_count) = (0, 0);
    for seed in 0..120 {
        let facts: Vec<Fact> = random_facts(seed, 60, &[0, 1, -1, 100]).into_iter().map(resolved).collect();
        let folder = tempfile::tempdir().unwrap();
        let settings = CompareSettings { memory_bytes_max: 0, threads: 1 };
        let mut comparer = Comparer::new(&settings, folder.path()).unwrap();
        for fact in &facts {
            comparer.add(fact).unwrap();
        }
        let suspicious: BTreeSet<RootKey> =
            comparer.finish().unwrap().roots().unwrap().map(Result::unwrap).collect();
        suspicious_count += suspicious.len();
        let mut intents = Intents::default();
        for ((scope, root_id), group) in groups(&facts) {
            intents.add(&scope, &root_id, &group);
            let said = judge(&CONTEXT, &scope, &root_id, group.clone());
            if said.findings.is_empty() && said.counted == Counted::default() && said.in_flight.is_empty() {
                continue;
            }
            judged_count += 1;
            let key = RootKey { scope, root_id };
            assert!(suspicious.contains(&key), "seed {seed}: {key:?} is called clean: {said:?}\n{group:?}");
        }
        for finding in intents.findings() {
            let key = RootKey { scope: finding.scope.clone(), root_id: finding.root_id.clone() };
            assert!(suspicious.contains(&key), "seed {seed}: {key:?} is called clean: {finding:?}");
        }
    }
    assert!(judged_count > 1_000, "{judged_count} of {suspicious_count}");
}
