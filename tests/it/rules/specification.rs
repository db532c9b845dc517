//! The rules in SQL against the engine, over generated facts, on SQLite and on PostgreSQL.

use super::relations::{self, Steps};
use super::{generate, hot};
use crate::postgres::Cluster;
use crate::world::{Line, RULES, VIEWS, World};
use sqlx::{AnyConnection, Connection};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

const SEEDS: std::ops::Range<u64> = 0..1_000;
/// Views are computed anew for each rule: what a person does with few facts is tested with fewer.
const SEEDS_OF_VIEWS: std::ops::Range<u64> = 1_000..1_150;

async fn sqlite() -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect("sqlite::memory:").await.unwrap()
}

/// All seeds at once: each has scopes of its own, so one run of a rule answers for all of them.
fn generated(seeds: std::ops::Range<u64>) -> (World, BTreeSet<Line>) {
    let mut world = World::default();
    let mut expected = BTreeSet::new();
    for seed in seeds {
        let of_seed = generate::world(seed);
        expected.extend(of_seed.lines());
        world.extend(of_seed);
    }
    (world.normalised(), expected)
}

static GENERATED: LazyLock<(World, BTreeSet<Line>)> = LazyLock::new(|| generated(SEEDS));
static GENERATED_FOR_VIEWS: LazyLock<(World, BTreeSet<Line>)> = LazyLock::new(|| generated(SEEDS_OF_VIEWS));

static HOT: LazyLock<(World, BTreeSet<Line>)> = LazyLock::new(|| {
    let world = hot::hot_world(HOT_FACTS);
    (world.normalised(), world.lines())
});

/// What all rules find in a world, on SQLite.
pub async fn sqlite_lines(world: &World) -> BTreeSet<Line> {
    found_by_sqlite(world, Steps::Views).await
}

async fn found_by_sqlite(world: &World, steps: Steps) -> BTreeSet<Line> {
    let mut connection = sqlite().await;
    relations::load(&mut connection, world, steps).await;
    relations::run_all(&mut connection).await
}

async fn found_by_postgres(world: &World, steps: Steps, database: &str) -> BTreeSet<Line> {
    let cluster = Cluster::shared();
    let mut connection = cluster.connect(database).await;
    relations::load(&mut connection, world, steps).await;
    relations::run_all(&mut connection).await
}

#[track_caller]
fn assert_same(database: &str, found: &BTreeSet<Line>, expected: &BTreeSet<Line>) {
    let invented: Vec<&Line> = found.difference(expected).take(5).collect();
    let missed: Vec<&Line> = expected.difference(found).take(5).collect();
    assert!(
        invented.is_empty() && missed.is_empty(),
        "the provider column names the failing seed\nonly {database} finds {invented:#?}\nonly the engine finds {missed:#?}"
    );
}

#[tokio::test]
async fn sqlite_finds_what_the_engine_finds() {
    let (world, expected) = &*GENERATED;
    assert_same("sqlite", &found_by_sqlite(world, Steps::Tables).await, expected);
}

#[tokio::test]
async fn postgres_finds_what_the_engine_finds() {
    let (world, expected) = &*GENERATED;
    assert_same("postgres", &found_by_postgres(world, Steps::Tables, "specification").await, expected);
}

#[tokio::test]
async fn sqlite_finds_the_same_through_views() {
    let (world, expected) = &*GENERATED_FOR_VIEWS;
    assert_same("sqlite", &found_by_sqlite(world, Steps::Views).await, expected);
}

#[tokio::test]
async fn postgres_finds_the_same_through_views() {
    let (world, expected) = &*GENERATED_FOR_VIEWS;
    assert_same("postgres", &found_by_postgres(world, Steps::Views, "specification_views").await, expected);
}

/// Hot objects, one of 100,000 facts, beside quiet ones. Twice the facts may take little more than
/// twice the time, which a test cannot measure; a step that compares every row with every other never ends.
const HOT_FACTS: u64 = 100_000;

#[tokio::test]
async fn a_hot_object_is_judged_alike_on_sqlite() {
    let (world, expected) = &*HOT;
    assert!(expected.iter().any(|line| line.kind == "duplicate_effect" && line.object_id == "ch_booked"));
    assert_same("sqlite", &found_by_sqlite(world, Steps::Tables).await, expected);
}

#[tokio::test]
async fn a_hot_object_is_judged_alike_on_postgres() {
    let (world, expected) = &*HOT;
    assert_same("postgres", &found_by_postgres(world, Steps::Tables, "hot").await, expected);
}

/// A person makes the views with `cat queries/rules/views/*.sql`; what the tests make must be the same.
#[test]
fn the_views_of_the_tests_are_the_files_in_their_order() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/queries/rules");
    let files = std::fs::read_dir(format!("{folder}/views")).unwrap().map(|file| file.unwrap().path());
    let files: BTreeSet<_> = files.collect();
    let texts: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert_eq!(texts, VIEWS);
    let readme = std::fs::read_to_string(format!("{folder}/README.md")).unwrap();
    for text in VIEWS {
        let (_, rest) = text.split_once("\ncreate view ").unwrap();
        let name = rest.split_whitespace().next().unwrap();
        assert!(readme.contains(&format!("\n| `{name}` | ")), "the README does not tell of {name}");
    }
}

/// They are there to be read.
#[test]
fn rules_and_views_are_short() {
    for (kind, text) in RULES {
        assert!(text.lines().count() <= 60, "{kind} is longer than a page");
    }
    for text in VIEWS {
        assert!(text.lines().count() <= 70, "longer than a page: {}", text.lines().next().unwrap());
    }
}

/// A specification that never fires proves nothing.
#[test]
fn generated_facts_have_every_kind_and_cause_many_times() {
    let (_, expected) = &*GENERATED;
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in expected {
        let cause = if line.cause.contains("_after_") { "went_back" } else { &line.cause };
        *counts.entry((&line.kind, cause)).or_default() += 1;
    }
    for (kind, cause) in EXPECTED_CAUSES {
        let count = counts.get(&(kind, cause)).copied().unwrap_or(0);
        assert!(count >= 5, "{kind} {cause:?} occurs {count} times: {counts:#?}");
    }
}

const EXPECTED_CAUSES: [(&str, &str); 26] = [
    ("amount_mismatch", ""),
    ("amount_mismatch", "factor=10"),
    ("amount_mismatch", "factor=100"),
    ("amount_mismatch", "refunded_total"),
    ("amount_mismatch", "rounding"),
    ("conflicting_event", ""),
    ("currency_mismatch", ""),
    ("duplicate_charge", ""),
    ("duplicate_effect", ""),
    ("forbidden_transition", "capture_exceeds_authorisation"),
    ("forbidden_transition", "went_back"),
    ("misattributed_effect", ""),
    ("missed_event", ""),
    ("missed_event", "consequence_unknown"),
    ("missed_event", "not_subscribed"),
    ("missing_effect", ""),
    ("orphan_effect", "effect_unknown"),
    ("orphan_effect", "object_unknown"),
    ("stale_state", ""),
    ("stale_state", "applied_out_of_order"),
    ("timing_difference", "cut_off"),
    ("unapplied_event", "dead_letter"),
    ("unapplied_event", "marked_processed_without_effect"),
    ("unapplied_event", "parked"),
    ("unapplied_event", "pending_too_long"),
    ("unknown_event", ""),
];
