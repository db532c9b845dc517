//! The oracle: seeded months with planted faults in random combinations, reconciled over real HTTP and
//! a real store. Found must be planted: none missed, none invented; after applying nothing correctable
//! is left, the books equal the provider's, and a second apply writes nothing. A failing seed prints
//! itself.

use crate::stage::Stage;
use recon::commands::Outcome;
use recon::demo::emulator::Faults;
use recon::demo::faults::{Fault, Mix};
use recon::record::EffectKind;
use sqlx::Row;
use std::collections::BTreeMap;
use std::path::Path;

/// Seeds in one run of the suite; `RECON_SEEDS` asks for more, `RECON_SEED` for a single one.
const SEEDS: u64 = 200;

/// The provider's truth against the whole ledger: what is left between them is exactly what a person
/// must decide and what is in flight. Nothing of the run's own code adds up here.
async fn books_equal_the_truth(stage: &Stage, seed: u64) {
    if stage.planted.iter().any(|one| one.fault == Fault::OtherCurrency) {
        // One side of such a row stands in another currency's total.
        return;
    }
    let store = stage.store().await;
    let sql = "select kind, currency, cast(sum(amount_minor) as bigint) as minor from ledger_entry group by kind, currency";
    let rows = sqlx::query(sql).fetch_all(store.pool()).await.unwrap();
    store.close().await;
    let mut left: BTreeMap<(EffectKind, String), i64> = BTreeMap::new();
    for row in &rows {
        let kind: EffectKind = row.get::<String, _>("kind").parse().unwrap();
        *left.entry((kind, row.get("currency"))).or_default() -= kind.sign() * row.get::<i64, _>("minor");
    }
    let is_in_flight = |root: &str| {
        let young = [Fault::InFlightYoung, Fault::InFlightRetried];
        stage.planted.iter().any(|one| one.root_id == root && young.contains(&one.fault))
    };
    let is_booked = |kind: EffectKind| !matches!(kind, EffectKind::Fee | EffectKind::Payout);
    for effect in stage.world.truth.iter().filter(|effect| is_booked(effect.kind)) {
        if !is_in_flight(&effect.root_id) {
            *left.entry((effect.kind, effect.currency.to_owned())).or_default() +=
                effect.kind.sign() * effect.amount_minor;
        }
    }
    for expected in stage.planted.iter().flat_map(|one| &one.expected) {
        let is_left = !expected.is_correctable() && expected.kind != "timing_difference";
        if let (Some(kind), Some(difference), true) = (expected.effect, expected.difference_minor, is_left) {
            *left.entry((kind, expected.currency.clone())).or_default() -= difference;
        }
    }
    left.retain(|_, minor| *minor != 0);
    assert!(left.is_empty(), "seed {seed}: truth minus books, beyond what a person must decide: {left:?}");
}

/// What finance adds up: for each currency the differences of the findings and what is in flight are the
/// difference of the tie-out. What is booked in another currency stands in that one's sum.
fn columns_add_up(dir: &Path, seed: u64) {
    let mut left: BTreeMap<String, i64> = BTreeMap::new();
    let mut add = |name: &str, columns: &[(&str, i64)]| {
        let mut reader = csv::Reader::from_path(dir.join(name)).unwrap();
        let head = reader.headers().unwrap().clone();
        let at = |name: &str| head.iter().position(|column| column == name).unwrap();
        for row in reader.records().map(Result::unwrap) {
            for (column, sign) in columns {
                let minor: i64 = row[at(column)].parse().unwrap_or(0);
                *left.entry(row[at("currency")].to_owned()).or_default() += sign * minor;
            }
            let is_findings = name == "findings.csv";
            let other = is_findings.then(|| row[at("note")].to_owned());
            if let Some((currency, _)) =
                other.as_deref().and_then(|note| note.strip_prefix("found_minor is in ")?.split_once('.'))
            {
                let minor: i64 = row[at("found_minor")].parse().unwrap();
                *left.entry(currency.to_owned()).or_default() -= minor;
            }
        }
    };
    add("findings.csv", &[("difference_minor", 1)]);
    add("tie_out.csv", &[("difference_minor", -1), ("in_flight_minor", 1)]);
    left.retain(|_, minor| *minor != 0);
    assert!(left.is_empty(), "seed {seed}: findings and in flight, less the tie-out: {left:?}");
}

async fn check(seed: u64, mix: &Mix) {
    let stage = Stage::new(seed, 220, mix, Faults::default()).await;
    let (outcome, dir) = stage.reconcile().await;
    let verdict = stage.verdict(&dir, false);
    assert!(
        verdict.is_exact(),
        "seed {seed}: missed {:#?}, invented {:#?}",
        verdict.missed,
        verdict.invented
    );
    let has_findings = stage
        .planted
        .iter()
        .flat_map(|one| &one.expected)
        .any(|expected| expected.kind != "timing_difference");
    columns_add_up(&dir, seed);
    assert_eq!(outcome, if has_findings { Outcome::Findings } else { Outcome::Clean }, "seed {seed}");
    let plan = dir.join("plan.csv");
    let (applied, said) = stage.apply(&plan).await;
    assert_eq!(applied, Outcome::Clean, "seed {seed}: {said}");
    let before = stage.business_rows().await;
    let (again, said) = stage.apply(&plan).await;
    assert_eq!(again, Outcome::Clean, "seed {seed}: {said}");
    assert_eq!(stage.business_rows().await, before, "seed {seed}: a second apply wrote something");
    let (_, dir) = stage.reconcile().await;
    let verdict = stage.verdict(&dir, true);
    assert!(
        verdict.is_exact(),
        "seed {seed} after applying: missed {:#?}, invented {:#?}",
        verdict.missed,
        verdict.invented
    );
    columns_add_up(&dir, seed);
    let plan = std::fs::read_to_string(dir.join("plan.csv")).unwrap();
    assert_eq!(plan.lines().count(), 1, "seed {seed}: something correctable is left:\n{plan}");
    books_equal_the_truth(&stage, seed).await;
    assert_eq!(stage.emulator.counters.writes(), 0, "seed {seed}: a write call to the provider");
}

/// The seeds of one half, so that two processes share them.
async fn check_seeds(half: u64) {
    if let Ok(seed) = std::env::var("RECON_SEED") {
        let seed: u64 = seed.parse().unwrap();
        return check(seed, &mix_of(seed)).await;
    }
    let count = std::env::var("RECON_SEEDS").map_or(SEEDS, |text| text.parse().unwrap());
    for seed in (1..=count).filter(|seed| seed % 2 == half) {
        check(seed, &mix_of(seed)).await;
    }
}

fn mix_of(seed: u64) -> Mix {
    Mix::random(seed, u32::try_from(seed % 12).unwrap() + 1)
}

#[tokio::test]
async fn found_is_planted_in_random_combinations_of_odd_seeds() {
    check_seeds(1).await;
}

#[tokio::test]
async fn found_is_planted_in_random_combinations_of_even_seeds() {
    check_seeds(0).await;
}

#[tokio::test]
async fn every_fault_alone_is_found_alone() {
    for (seed, fault) in (1_000..).zip(Fault::LOUD.into_iter().chain(Fault::QUIET)) {
        check(seed, &Mix::only(fault)).await;
    }
}
