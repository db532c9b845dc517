//! Two sides in little memory, with hashes that say nothing, and with keys of very many rows.

use super::{Compared, Difference, DifferenceKind, PairRow, Pairs, Place};
use crate::config::CompareSettings;
use std::collections::BTreeMap;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Key, currency, amount, status.
type Row = (String, u16, i64, &'static str);

fn compare(
    sides: [&[Row]; 2],
    memory_bytes_max: usize,
    threads: usize,
    hash: super::Hash,
    folder: &Path,
) -> Compared {
    let pairs = Pairs::with_hash(&CompareSettings { memory_bytes_max, threads }, folder, hash);
    let mut feeds: Vec<_> = (0..threads).map(|_| pairs.feed().unwrap()).collect();
    for (source, rows) in (0..).zip(sides) {
        for (line, (key, currency, amount_minor, status)) in (1..).zip(rows) {
            let feed = usize::try_from(line).unwrap() % threads;
            let row = PairRow {
                key: key.as_bytes(),
                currency: *currency,
                amount_minor: *amount_minor,
                status: status.as_bytes(),
                is_left: source == 0,
                place: Place { source, line },
            };
            feeds[feed].add(&row).unwrap();
        }
    }
    pairs.judge(feeds.into_iter().map(|feed| feed.close().unwrap()).collect()).unwrap()
}

fn found(compared: &Compared) -> Vec<Difference> {
    compared.differences().unwrap().map(Result::unwrap).collect()
}

fn rows(seed: u64, count: u64) -> Vec<Row> {
    let mut state = seed;
    let mut next = move |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let row = |_| {
        // Half of the rows share one key.
        let key = if next(2) == 0 { "hot".to_owned() } else { format!("k{}", next(count / 4)) };
        let currency = u16::try_from(next(3)).unwrap();
        (
            key,
            currency,
            i64::try_from(next(200)).unwrap() - 100,
            ["", "paid", "open"][usize::try_from(next(3)).unwrap()],
        )
    };
    (0..count).map(row).collect()
}

#[test]
fn memory_threads_and_hashes_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (left, right) = (rows(1, 60_000), rows(2, 60_000));
    let sides = [&*left, &*right];
    let expected = compare(sides, 256 << 20, 2, xxh3_64, folder.path());
    let differences = found(&expected);
    assert!(differences.len() > 10_000);
    let hashes: [super::Hash; 3] = [xxh3_64, |_| 0, |key| key.len() as u64];
    for (memory, threads, hash) in [(0, 1, hashes[0]), (0, 3, hashes[1]), (1 << 20, 2, hashes[2])] {
        let compared = compare(sides, memory, threads, hash, folder.path());
        assert_eq!(found(&compared), differences, "{memory} bytes, {threads} threads");
        assert_eq!((compared.matched(), compared.sums()), (expected.matched(), expected.sums()));
    }
}

#[test]
fn a_key_with_very_many_rows_needs_no_more_memory() {
    const ROWS: usize = 300_000;
    let folder = tempfile::tempdir().unwrap();
    let row = |amount| ("hot".to_owned(), 0, amount, "");
    // All of the left lies below all of the right, so every row waits before the first is paired.
    let left: Vec<Row> = (0..ROWS).map(|number| row(i64::try_from(number).unwrap())).collect();
    let right: Vec<Row> = (0..ROWS).map(|number| row(i64::try_from(ROWS + number).unwrap())).collect();
    let compared = compare([&left, &right], 0, 1, xxh3_64, folder.path());
    let kinds = compared.differences().unwrap().map(|difference| difference.unwrap().kind);
    assert_eq!(kinds.filter(|kind| *kind == DifferenceKind::AmountDiffers).count(), ROWS);
    // Equal rows, one more of them on the left: the last one, which repeats the first.
    let same: Vec<Row> = (0..ROWS).map(|_| row(5)).collect();
    let compared = compare([&same, &same[1..]], 0, 1, xxh3_64, folder.path());
    let differences = found(&compared);
    let [difference] = &*differences else { panic!("{}", differences.len()) };
    assert_eq!(difference.kind, DifferenceKind::DuplicateOnLeft);
    assert_eq!(difference.left.as_ref().unwrap().place, Place { source: 0, line: ROWS as u64 });
    assert_eq!(difference.repeats, Some(Place { source: 0, line: 1 }));
    assert_eq!(compared.matched(), ROWS as u64 - 1);
}

#[test]
fn exchanging_the_sides_mirrors_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (left, right) = (rows(3, 5_000), rows(4, 5_000));
    let counts = |sides: [&[Row]; 2]| {
        let mut counts: BTreeMap<(String, &str), u64> = BTreeMap::new();
        for difference in found(&compare(sides, 1 << 20, 2, xxh3_64, folder.path())) {
            *counts.entry((difference.key, difference.kind.as_str())).or_default() += 1;
        }
        counts
    };
    let mirrored = counts([&right, &left]).into_iter().map(|((key, kind), count)| {
        let kind = match kind {
            "duplicate_on_left" => "duplicate_on_right",
            "duplicate_on_right" => "duplicate_on_left",
            "missing_on_left" => "missing_on_right",
            "missing_on_right" => "missing_on_left",
            kind => kind,
        };
        ((key, kind), count)
    });
    assert_eq!(mirrored.collect::<BTreeMap<_, _>>(), counts([&left, &right]));
}

#[test]
fn a_double_credit_is_never_told_as_a_wrong_amount() {
    let folder = tempfile::tempdir().unwrap();
    let row = |amount| ("k".to_owned(), 0, amount, "");
    let compared =
        compare([&[row(100), row(300)], &[row(100), row(100), row(301)]], 0, 1, xxh3_64, folder.path());
    let kinds: Vec<(&str, Option<i64>, Option<i64>)> = found(&compared)
        .iter()
        .map(|found| {
            let amount = |seen: &Option<super::Seen>| seen.as_ref().map(|seen| seen.amount_minor);
            (found.kind.as_str(), amount(&found.left), amount(&found.right))
        })
        .collect();
    assert_eq!(kinds, [("duplicate_on_right", None, Some(100)), ("amount_differs", Some(300), Some(301))]);
}
