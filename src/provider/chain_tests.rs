//! Chains against a simulated list with seeded faults: whatever the list does, every record is kept exactly as
//! part of what was closed, or a gap says that it may not be.

use super::chain::{Ask, Chain, PartState};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// What the list does wrong, each in so many of a thousand requests.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    cursor_lost: u64,
    restart: u64,
    empty_with_more: u64,
    early_end: u64,
    ignores_cursors: bool,
}

/// Newest first.
struct List {
    rows: Vec<(String, i64)>,
    faults: Faults,
    /// Cursors at which it ended early already: the same lie twice cannot be told from the truth.
    ended_early: RefCell<BTreeSet<String>>,
}

impl List {
    fn new(rows: Vec<(String, i64)>, faults: Faults) -> Self {
        Self { rows, faults, ended_early: RefCell::default() }
    }
}

enum Answer {
    Page(Vec<(String, i64)>, bool),
    CursorLost,
}

impl List {
    fn answer(&self, ask: &Ask, random: &mut Random) -> Answer {
        let hits = |per_mille: u64, random: &mut Random| random.below(1000) < per_mille;
        let listed: Vec<_> =
            self.rows.iter().filter(|row| ask.from <= row.1 && row.1 < ask.until).cloned().collect();
        let mut start = 0;
        if let Some(id) = &ask.after {
            if hits(self.faults.cursor_lost, random) {
                return Answer::CursorLost;
            }
            if hits(self.faults.early_end, random) && self.ended_early.borrow_mut().insert(id.clone()) {
                return Answer::Page(Vec::new(), false);
            }
            if !self.faults.ignores_cursors && !hits(self.faults.restart, random) {
                start = listed.iter().position(|row| row.0 == *id).map_or(0, |at| at + 1);
            }
        }
        if hits(self.faults.empty_with_more, random) {
            return Answer::Page(Vec::new(), true);
        }
        let page: Vec<_> = listed[start..].iter().take(100).cloned().collect();
        let has_more = start + page.len() < listed.len();
        Answer::Page(page, has_more)
    }
}

fn list(random: &mut Random, faults: Faults) -> List {
    let count = random.below(1500);
    let span_max = if random.below(3) == 0 { 20 } else { 5000 };
    let span = 1 + random.below(span_max);
    let mut rows: Vec<(String, i64)> =
        (0..count).map(|n| (format!("ev_{n}"), 1000 + i64::try_from(random.below(span)).unwrap())).collect();
    if random.below(3) == 0 {
        let second = 1000 + i64::try_from(random.below(span)).unwrap();
        rows.extend((0..250).map(|n| (format!("tie_{n}"), second)));
    }
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    List::new(rows, faults)
}

/// Reads a list with several chains in random order; returns parts, kept ids and requests.
fn read(list: &List, random: &mut Random, bounds: (i64, i64)) -> (Vec<Chain>, BTreeMap<String, i64>, u64) {
    let (from, until) = bounds;
    let mut chains = vec![Chain::new(from, until, from)];
    let mut kept = BTreeMap::new();
    let mut oldest: Option<i64> = None;
    let mut requests = 0;
    loop {
        let unfinished: Vec<usize> = (0..chains.len()).filter(|at| !chains[*at].is_finished()).collect();
        if unfinished.is_empty() {
            let reopened = oldest.is_some_and(|oldest| {
                chains.iter_mut().filter_map(|chain| chain.contradicted_by(oldest).then_some(())).count() > 0
            });
            if !reopened {
                return (chains, kept, requests);
            }
            continue;
        }
        let at = unfinished[usize::try_from(random.below(unfinished.len() as u64)).unwrap()];
        let ask = chains[at].ask().unwrap();
        let answer = list.answer(&ask, random);
        // A split while the answer is on its way.
        if random.below(2) == 0
            && let Some(older) = chains[at].split()
        {
            chains.push(older);
        }
        requests += 1;
        assert!(requests < 20_000, "no end in sight: {:?}", list.faults);
        match answer {
            Answer::CursorLost => chains[at].on_cursor_lost(),
            Answer::Page(rows, has_more) => {
                let view: Vec<(&str, i64)> = rows.iter().map(|row| (row.0.as_str(), row.1)).collect();
                let keeps = chains[at].on_page(&view, has_more);
                for (row, is_kept) in rows.iter().zip(keeps) {
                    if is_kept {
                        oldest = Some(oldest.map_or(row.1, |oldest| oldest.min(row.1)));
                        kept.insert(row.0.clone(), row.1);
                    }
                }
            }
        }
        check_parts(&chains, bounds, list, &kept);
    }
}

/// The parts tile the range, and every record of a closed part is kept, at every moment (a run may be killed).
fn check_parts(chains: &[Chain], (from, until): (i64, i64), list: &List, kept: &BTreeMap<String, i64>) {
    let mut parts: Vec<_> = chains.iter().flat_map(Chain::parts).collect();
    parts.sort_by_key(|part| part.from);
    let mut reached = from;
    for part in &parts {
        assert_eq!(part.from, reached, "{parts:?}");
        reached = part.until;
    }
    assert_eq!(reached, until, "{parts:?}");
    for (id, second) in &list.rows {
        let part = parts.iter().find(|part| part.from <= *second && *second < part.until);
        if part.is_some_and(|part| part.state == PartState::Closed) {
            assert!(kept.contains_key(id), "{id} at {second} is lost: {:?} {parts:?}", list.faults);
        }
    }
}

fn check_seed(seed: u64, faults: Faults) -> (u64, Vec<PartState>) {
    let mut random = Random(seed);
    let list = list(&mut random, faults);
    let bounds = (900, 900 + i64::try_from(200 + random.below(6000)).unwrap());
    let result = std::panic::catch_unwind(move || {
        let (chains, kept, requests) = read(&list, &mut random, bounds);
        for second in kept.values() {
            assert!(bounds.0 <= *second && *second < bounds.1);
        }
        (requests, chains.iter().flat_map(Chain::parts).map(|part| part.state).collect())
    });
    result.unwrap_or_else(|_| panic!("seed {seed} with {faults:?}"))
}

#[test]
fn every_record_is_kept_or_a_gap_says_so() {
    for seed in 0..1000 {
        let mut random = Random(seed ^ 0xFA_0175);
        let mut some = |bound| if random.below(2) == 0 { random.below(bound) } else { 0 };
        let faults = Faults {
            cursor_lost: some(300),
            restart: some(300),
            empty_with_more: some(100),
            early_end: some(200),
            ignores_cursors: seed % 10 == 9,
        };
        let (_, states) = check_seed(seed, faults);
        assert!(!states.contains(&PartState::Open), "seed {seed}: {states:?}");
    }
}

#[test]
fn an_honest_list_has_no_gap_and_few_needless_requests() {
    for seed in 0..100 {
        let (_, states) = check_seed(seed, Faults::default());
        assert!(states.iter().all(|state| *state == PartState::Closed), "seed {seed}: {states:?}");
    }
    let rows = (0..10_000).map(|n| (format!("ev_{n}"), 20_000 - n)).collect();
    let list = List::new(rows, Faults::default());
    let (_, kept, requests) = read(&list, &mut Random(1), (10_001, 20_001));
    assert_eq!(kept.len(), 10_000);
    assert!(requests <= 150, "{requests} requests for 100 pages and their splits");
}

#[test]
fn a_list_that_ignores_cursors_ends_in_a_gap_only_where_a_second_is_larger_than_a_page() {
    let mut rows: Vec<(String, i64)> = (0..250).map(|n| (format!("tie_{n}"), 500)).collect();
    rows.extend((0..300).map(|n| (format!("old_{n:03}"), 400 - n / 10)));
    let list = List::new(rows, Faults { ignores_cursors: true, ..Faults::default() });
    let (chains, kept, _) = read(&list, &mut Random(7), (300, 600));
    let gaps: Vec<_> = chains
        .iter()
        .flat_map(Chain::parts)
        .filter(|part| part.state != PartState::Closed)
        .map(|part| (part.from, part.until, part.state))
        .collect();
    assert_eq!(gaps, [(500, 501, PartState::Gap("cursor_lost"))]);
    assert_eq!(kept.keys().filter(|id| id.starts_with("old")).count(), 300);
}

#[test]
fn a_list_that_is_not_newest_first_is_read_by_cursor_or_given_up() {
    let mut rows: Vec<(String, i64)> = (0..300).map(|n| (format!("ev_{n:03}"), 1000 - n)).collect();
    rows.swap(40, 150);
    let honest = List::new(rows.clone(), Faults::default());
    let (chains, kept, _) = read(&honest, &mut Random(3), (0, 2000));
    assert!(chains.iter().flat_map(Chain::parts).all(|part| part.state == PartState::Closed));
    assert_eq!(kept.len(), 300);
    let faulty = List::new(rows, Faults { cursor_lost: 1000, ..Faults::default() });
    let (chains, _, _) = read(&faulty, &mut Random(3), (0, 2000));
    let states: Vec<_> = chains.iter().flat_map(Chain::parts).map(|part| part.state).collect();
    assert!(states.contains(&PartState::Gap("unordered")), "{states:?}");
}
