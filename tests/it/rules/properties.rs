//! What holds of the rules whatever the facts are.

use super::generate;
use crate::random::Random;
use crate::world::{CONTEXT, World};
use recon::findings::{Context, Finding};
use recon::record::{EffectKind, Scope};
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: std::ops::Range<u64> = 10_000..10_600;

/// Every seed under a run with an event leg, without one, and in an incident without grace.
fn for_each_world(check: impl Fn(u64, &Context, &World)) {
    for seed in SEEDS {
        let world = generate::world(seed);
        for has_event_leg in [true, false] {
            for pending_since_us in [i64::MAX, 1_500] {
                check(seed, &Context { has_event_leg, pending_since_us, ..CONTEXT }, &world);
            }
        }
    }
}

#[test]
fn normalising_twice_changes_nothing() {
    for seed in SEEDS {
        for ((_, root_id), group) in generate::world(seed).groups() {
            let mut once = group.clone();
            once.normalise(&root_id);
            let mut twice = once.clone();
            twice.normalise(&root_id);
            assert_eq!(format!("{once:?}"), format!("{twice:?}"), "seed {seed}, {root_id}");
        }
    }
}

type Totals = BTreeMap<(Scope, String, EffectKind), i64>;

/// What is too much or too little in the window is explained to the last minor unit: by a finding with that
/// effect kind, or by money in flight.
#[test]
fn the_tie_out_is_explained_whole() {
    for_each_world(|seed, context, world| {
        let mut difference = Totals::new();
        let add = |totals: &mut Totals, scope: &Scope, currency: &str, kind, minor: i64| {
            *totals.entry((scope.clone(), currency.to_owned(), kind)).or_default() += minor;
        };
        for effect in world.provider_effects.iter().filter(|effect| effect.in_window) {
            let minor = effect.kind.sign() * effect.amount_minor;
            add(&mut difference, &effect.scope, &effect.currency, effect.kind, minor);
        }
        for row in world.local_effects.iter().filter(|row| row.in_window) {
            let minor = -row.kind.sign() * row.amount_minor;
            add(&mut difference, &row.scope, &row.currency, row.kind, minor);
        }
        let mut explained = Totals::new();
        for (_, judgement) in &world.judge(context).0 {
            for finding in &judgement.findings {
                for (currency, minor) in &finding.explains {
                    let kind = finding.effect.expect("only a finding on an effect explains money");
                    add(&mut explained, &finding.scope, currency, kind, *minor);
                }
            }
            for flight in &judgement.in_flight {
                add(&mut explained, &flight.scope, &flight.currency, flight.kind, flight.minor);
            }
        }
        difference.retain(|_, minor| *minor != 0);
        explained.retain(|_, minor| *minor != 0);
        assert_eq!(difference, explained, "seed {seed}, event leg {}", context.has_event_leg);
    });
}

#[test]
fn the_order_of_the_facts_changes_nothing() {
    for_each_world(|seed, context, world| {
        let mut shuffled = world.clone();
        let mut random = Random::new(seed ^ 0x5eed);
        random.shuffle(&mut shuffled.provider_events);
        random.shuffle(&mut shuffled.inbox_events);
        random.shuffle(&mut shuffled.provider_effects);
        random.shuffle(&mut shuffled.local_effects);
        random.shuffle(&mut shuffled.provider_states);
        random.shuffle(&mut shuffled.local_states);
        let (judged, others) = world.judge(context);
        let (judged_shuffled, others_shuffled) = shuffled.judge(context);
        assert_eq!(format!("{judged:?}"), format!("{judged_shuffled:?}"), "seed {seed}");
        assert_eq!(others, others_shuffled, "seed {seed}");
    });
}

/// One kind for one effect of one object; more than one row only where an orphan has several currencies.
#[test]
fn one_unit_has_one_finding() {
    for_each_world(|seed, context, world| {
        for ((_, root_id), judgement) in world.judge(context).0 {
            let mut ids = BTreeSet::new();
            let mut kinds: BTreeMap<(String, EffectKind), BTreeSet<_>> = BTreeMap::new();
            for finding in &judgement.findings {
                assert!(ids.insert(finding.id()), "seed {seed}: {root_id} has {finding:?} twice");
                let Some(effect) = finding.effect else { continue };
                kinds.entry((finding.object_id.clone(), effect)).or_default().insert(finding.kind);
            }
            let doubled: Vec<_> = kinds.iter().filter(|(_, kinds)| kinds.len() > 1).collect();
            assert!(doubled.is_empty(), "seed {seed}: {doubled:?}");
        }
    });
}

/// The difference column is what the finding explains, wherever the window cuts nothing.
#[test]
fn differences_add_up_to_the_tie_out() {
    for seed in SEEDS {
        let mut world = generate::world(seed);
        world.provider_effects.iter_mut().for_each(|effect| effect.in_window = true);
        world.local_effects.iter_mut().for_each(|row| row.in_window = true);
        let explains = |finding: &Finding| -> i64 {
            let own = finding.explains.iter().filter(|(currency, _)| *currency == finding.currency);
            own.map(|(_, minor)| minor).sum()
        };
        for (_, judgement) in world.judge(&CONTEXT).0 {
            for finding in judgement.findings.iter().filter(|finding| finding.effect.is_some()) {
                let difference = finding.difference_minor();
                assert_eq!(difference, Some(explains(finding)), "seed {seed}: {finding:?}");
            }
        }
    }
}
