//! The engine against the reference, over random facts that repeat, tie and contradict each other.

use super::reference::{Answer, compare};
use super::{Comparer, Hash, Suspicious};
use crate::config::CompareSettings;
use crate::record::{
    Alias, EffectKind, Fact, InboxEvent, InboxStatus, LocalEffect, LocalState, Note, NoteKind,
    ProviderEffect, ProviderEvent, ProviderState, Scope, Status, Tracks, Window,
};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// A seeded source of random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, chance: u64) -> bool {
        self.below(chance) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        let place = usize::try_from(self.below(of.len() as u64)).unwrap();
        of[place].clone()
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for place in (1..list.len()).rev() {
            let other = usize::try_from(self.below(place as u64 + 1)).unwrap();
            list.swap(place, other);
        }
    }
}

/// A payment that is clean on every side, before anything is broken.
fn payment(scope: &Scope, number: u64, random: &mut Random) -> Vec<Fact> {
    let root = format!("pi_{number}");
    let charge = format!("ch_{number}");
    let currency: String = random.pick(&["usd", "brl", "jpy"]).to_owned();
    let at_us = 1_000 + i64::try_from(random.below(50)).unwrap();
    let amount = 1 + i64::try_from(random.below(5_000)).unwrap();
    let mut facts = Vec::new();
    let mut effects = vec![(EffectKind::Credit, charge, amount, 0)];
    for part in 0..random.pick(&[0, 0, 1, 3_i64]) {
        effects.push((EffectKind::Refund, format!("re_{number}_{part}"), 1 + part % 2, 10 + part));
    }
    if random.one_in(5) {
        effects.push((EffectKind::DisputeWithdrawn, format!("dp_{number}"), amount, 20));
    }
    let refunded: i64 =
        effects.iter().filter(|effect| effect.0 == EffectKind::Refund).map(|effect| effect.2).sum();
    for (kind, object, minor, later) in effects {
        let event = format!("evt_{object}");
        facts.push(Fact::ProviderEvent(provider_event(scope, &root, &event, true, Tracks::Effect(kind))));
        facts.push(Fact::InboxEvent(inbox_event(scope, &event, at_us + later)));
        facts.push(Fact::ProviderEffect(ProviderEffect {
            scope: scope.clone(),
            root_id: root.clone(),
            object_id: object.clone(),
            kind,
            amount_minor: minor,
            currency: currency.clone(),
            occurred_at_us: at_us + later,
            intent: random.pick(&["", &root]).to_owned(),
            in_window: true,
        }));
        let object_id = if random.one_in(4) && kind == EffectKind::Credit { root.clone() } else { object };
        facts.push(Fact::LocalEffect(LocalEffect {
            scope: scope.clone(),
            root_id: root.clone(),
            effect_id: format!("row_{object_id}"),
            object_id,
            kind,
            amount_minor: minor,
            currency: currency.clone(),
            applied_at_us: at_us + later + 5,
            event_id: if random.one_in(3) { String::new() } else { event },
            corrects_effect_id: String::new(),
            in_window: true,
        }));
    }
    for (event, tracks, wanted) in
        [("a", Tracks::State, true), ("b", Tracks::Nothing, true), ("c", Tracks::Nothing, false)]
    {
        let event = format!("evt_{number}_{event}");
        facts.push(Fact::ProviderEvent(provider_event(scope, &root, &event, wanted, tracks)));
        if wanted {
            facts.push(Fact::InboxEvent(inbox_event(scope, &event, at_us)));
        }
    }
    let status = random.pick(&Status::ALL);
    let word = if random.one_in(2) { Some(refunded) } else { None };
    facts.push(Fact::ProviderState(ProviderState {
        scope: scope.clone(),
        root_id: root.clone(),
        object_id: root.clone(),
        status,
        refunded_minor: word,
        authorized_minor: if random.one_in(2) { Some(amount) } else { None },
        at_us,
    }));
    facts.push(Fact::LocalState(LocalState {
        scope: scope.clone(),
        root_id: root.clone(),
        object_id: root,
        status,
        refunded_minor: if random.one_in(2) { Some(refunded) } else { None },
        updated_at_us: at_us,
        changed_by: String::new(),
    }));
    facts
}

fn provider_event(scope: &Scope, root: &str, event: &str, wanted: bool, tracks: Tracks) -> ProviderEvent {
    ProviderEvent {
        scope: scope.clone(),
        root_id: root.to_owned(),
        object_id: root.to_owned(),
        event_id: event.to_owned(),
        event_type: "charge.succeeded".to_owned(),
        tracks,
        created_us: 1_000,
        wanted,
        settled: true,
    }
}

fn inbox_event(scope: &Scope, event: &str, received_at_us: i64) -> InboxEvent {
    InboxEvent {
        scope: scope.clone(),
        event_id: event.to_owned(),
        event_type: "charge.succeeded".to_owned(),
        received_at_us,
        status: InboxStatus::Applied,
        body_sha256: String::new(),
    }
}

/// Breaks one fact in one way; the other facts stay.
fn break_one(fact: &mut Fact, scopes: &[Scope], minors: &[i64], random: &mut Random) {
    let id = random.pick(&["", "pi_1", "pi_2", "ch_1", "re_1_0", "evt_ch_1", "é", "pi_1\u{0}"]).to_owned();
    let minor = random.pick(minors);
    let at_us = random.pick(&[0, 1_000, 1_010, 1_020, 5_000, i64::MIN, i64::MAX]);
    let what = random.below(8);
    match fact {
        Fact::ProviderEvent(event) => match what {
            0 => event.root_id = id,
            1 => event.event_id = id,
            2 => event.wanted = false,
            3 => event.tracks = Tracks::Nothing,
            _ => event.scope = random.pick(scopes),
        },
        Fact::InboxEvent(event) => match what {
            0 => event.event_id = id,
            1 | 2 => event.status = random.pick(&InboxStatus::ALL),
            3 => event.received_at_us = at_us,
            _ => event.scope = random.pick(scopes),
        },
        Fact::ProviderEffect(effect) => match what {
            0 => effect.root_id = id,
            1 => effect.object_id = id,
            2 => effect.amount_minor = minor,
            3 => effect.currency = random.pick(&["usd", "", "brl"]).to_owned(),
            4 => effect.occurred_at_us = at_us,
            5 => effect.in_window = false,
            6 => effect.intent = id,
            _ => effect.kind = random.pick(&EffectKind::ALL),
        },
        Fact::LocalEffect(effect) => match what {
            0 => effect.root_id = id,
            1 => effect.object_id = id,
            2 => effect.amount_minor = minor,
            3 => effect.currency = random.pick(&["usd", "", "brl"]).to_owned(),
            4 => effect.applied_at_us = at_us,
            5 => effect.event_id = id,
            6 => effect.corrects_effect_id = id,
            _ => effect.kind = random.pick(&EffectKind::ALL),
        },
        Fact::ProviderState(state) => match what {
            0 => state.root_id = id,
            1 => state.refunded_minor = Some(minor),
            2 => state.authorized_minor = Some(minor),
            _ => state.status = random.pick(&Status::ALL),
        },
        Fact::LocalState(state) => match what {
            0 => state.root_id = id,
            1 | 2 => state.refunded_minor = Some(minor),
            _ => state.status = random.pick(&Status::ALL),
        },
        Fact::Alias(_) | Fact::Note(_) => {}
    }
}

fn scopes() -> Vec<Scope> {
    [
        ("stripe", "", "live"),
        ("stripe", "acct_1", "live"),
        ("stripe", "acct_1", "test"),
        ("other", "", "live"),
    ]
    .map(|(provider, account, mode)| Scope::new(provider, account, mode))
    .to_vec()
}

/// Random facts: mostly clean payments, some broken, some repeated.
pub(super) fn random_facts(seed: u64, payments: u64, minors: &[i64]) -> Vec<Fact> {
    let mut random = Random(seed);
    let scopes = scopes();
    let mut facts = Vec::new();
    for number in 0..payments {
        let mut of_payment = payment(&random.pick(&scopes), number, &mut random);
        if random.one_in(3) {
            for _ in 0..=random.below(2) {
                let place = usize::try_from(random.below(of_payment.len() as u64)).unwrap();
                match random.below(4) {
                    0 => drop(of_payment.remove(place)),
                    1 => of_payment.push(of_payment[place].clone()),
                    _ => break_one(&mut of_payment[place], &scopes, minors, &mut random),
                }
            }
        }
        facts.extend(of_payment);
    }
    let scope = random.pick(&scopes);
    facts.push(Fact::Note(Note {
        scope: scope.clone(),
        root_id: "pi_0".to_owned(),
        object_id: "ch_0".to_owned(),
        event_ids: Vec::new(),
        kind: NoteKind::NeedsReview,
        cause: String::new(),
        text: String::new(),
        at_us: 0,
    }));
    let (alias_id, root_id) = ("in_1".to_owned(), "pi_1".to_owned());
    facts.push(Fact::Alias(Alias { scope, alias_id, root_id, is_part: false }));
    random.shuffle(&mut facts);
    facts
}

fn covered() -> BTreeMap<Scope, Vec<Window>> {
    let scopes = scopes();
    let ranges = vec![Window { from_us: 900, until_us: 1_020 }, Window { from_us: 1_030, until_us: 2_000 }];
    BTreeMap::from([(scopes[0].clone(), ranges), (scopes[1].clone(), Vec::new())])
}

const MINORS: [i64; 6] = [0, 1, -1, 100, i64::MAX, i64::MIN];
const TINY: usize = 1;
const NORMAL: usize = 256 << 20;

fn run(facts: &[Fact], memory_bytes_max: usize, threads: usize, hash: Hash) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let settings = CompareSettings { memory_bytes_max, threads };
    let mut comparer = Comparer::with_hash(&settings, folder.path(), hash).unwrap().covering(covered());
    let (own, of_feeds) = facts.split_at(facts.len() / 2);
    let mut feeds: Vec<_> = (0..threads).map(|_| comparer.feed().unwrap()).collect();
    for (place, fact) in of_feeds.iter().enumerate() {
        feeds[place % threads].add(fact).unwrap();
    }
    for feed in feeds {
        feed.close().unwrap();
    }
    for fact in own {
        comparer.add(fact).unwrap();
    }
    let answer = answer_of(&comparer.finish().unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "spill files are left");
    answer
}

fn answer_of(suspicious: &Suspicious) -> Answer {
    let roots: Vec<_> = suspicious.roots().unwrap().map(Result::unwrap).collect();
    let inbox_only: Vec<_> = suspicious.inbox_only().unwrap().map(Result::unwrap).collect();
    assert!(roots.is_sorted_by(|one, next| one < next), "roots are sorted and come once");
    assert!(inbox_only.is_sorted_by(|one, next| one < next), "events are sorted and come once");
    Answer {
        roots: roots.into_iter().collect(),
        inbox_only: inbox_only.into_iter().collect(),
        totals: suspicious.totals().clone(),
    }
}

#[test]
fn engine_and_reference_agree_whatever_the_memory_threads_and_order() {
    for seed in 0..40 {
        let mut facts = random_facts(seed, if seed == 0 { 3_000 } else { 60 }, &MINORS);
        let expected = compare(&facts, &covered());
        assert!(!expected.roots.is_empty(), "seed {seed}");
        let mut random = Random(seed);
        for memory in [TINY, NORMAL] {
            for threads in [1, 2, 4] {
                random.shuffle(&mut facts);
                let found = run(&facts, memory, threads, xxh3_64);
                assert_eq!(found, expected, "seed {seed}, memory {memory}, {threads} threads");
            }
        }
    }
}

#[test]
fn clean_payments_are_clean() {
    let (mut random, scope) = (Random(7), Scope::new("stripe", "", "live"));
    let facts: Vec<Fact> = (0..500).flat_map(|number| payment(&scope, number, &mut random)).collect();
    let found = run(&facts, NORMAL, 2, xxh3_64);
    assert_eq!((found.roots.len(), found.inbox_only.len()), (0, 0), "{:?}", found.roots);
    assert!(found.totals.sums.values().all(|sums| sums.provider_minor == sums.local_minor));
}

#[test]
fn a_hash_that_always_collides_changes_nothing() {
    for (seed, hash) in [(3, (|_| 0) as Hash), (4, |_| u64::MAX), (5, |key| key.len() as u64)] {
        let facts = random_facts(seed, 400, &MINORS);
        let expected = compare(&facts, &covered());
        for memory in [TINY, NORMAL] {
            assert_eq!(run(&facts, memory, 2, hash), expected, "seed {seed}, memory {memory}");
        }
    }
}

#[test]
fn a_hot_object_is_judged_in_any_memory() {
    let scope = Scope::new("other", "", "live");
    let mut facts = payment(&scope, 1, &mut Random(1));
    facts.retain(|fact| !matches!(fact, Fact::ProviderState(_) | Fact::LocalState(_)));
    for part in 0..60_000_i64 {
        let effect = ProviderEffect {
            scope: scope.clone(),
            root_id: "pi_1".to_owned(),
            object_id: format!("re_hot_{part}"),
            kind: EffectKind::Refund,
            amount_minor: 1,
            currency: "usd".to_owned(),
            occurred_at_us: 2_000 + part / 7,
            intent: String::new(),
            in_window: true,
        };
        facts.push(Fact::LocalEffect(LocalEffect {
            scope: scope.clone(),
            root_id: "pi_1".to_owned(),
            object_id: effect.object_id.clone(),
            effect_id: format!("row_{part}"),
            kind: effect.kind,
            amount_minor: 1,
            currency: "usd".to_owned(),
            applied_at_us: 3_000 + part / 7,
            event_id: String::new(),
            corrects_effect_id: String::new(),
            in_window: true,
        }));
        facts.push(Fact::ProviderEffect(effect));
    }
    facts.retain(
        |fact| !matches!(fact, Fact::ProviderEffect(effect) if effect.kind == EffectKind::DisputeWithdrawn),
    );
    facts.retain(
        |fact| !matches!(fact, Fact::LocalEffect(effect) if effect.kind == EffectKind::DisputeWithdrawn),
    );
    for memory in [TINY, NORMAL] {
        assert_eq!(run(&facts, memory, 2, xxh3_64).roots.len(), 0, "memory {memory}");
        let repeated = facts[facts.len() - 2].clone();
        facts.push(repeated);
        assert_eq!(run(&facts, memory, 2, xxh3_64).roots.len(), 1, "memory {memory}");
        facts.pop();
    }
}

#[test]
fn a_feed_that_is_lost_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let settings = CompareSettings { memory_bytes_max: TINY, threads: 1 };
    let comparer = Comparer::new(&settings, folder.path()).unwrap();
    drop(comparer.feed().unwrap());
    assert!(comparer.finish().unwrap_err().to_string().contains("1 feeds"));
}
