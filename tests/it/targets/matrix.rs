//! Every database × every target × the seeded oracle: found is planted, afterwards nothing correctable is left, and a
//! second apply writes nothing, anywhere.

use super::handler::Handler;
use super::shop::{Shop, To};
use crate::books::{Kind, on_each};
use recon::commands::Outcome;
use recon::demo::faults::Mix;

on_each!(by_the_ledger, by_statements, by_deliveries);

/// Seeds for each database; `RECON_SEEDS` asks for more. The first has every correctable fault. The ledger's own oracle has
/// many more.
const fn seeds(to: To) -> u64 {
    if matches!(to, To::Ledger) { 1 } else { 2 }
}

fn mix_of(seed: u64) -> Mix {
    if seed == 1 { Mix::correctable(1) } else { Mix::random(seed, u32::try_from(seed % 12).unwrap() + 1) }
}

async fn check(kind: Kind, to: To, seed: u64) {
    let mix = mix_of(seed);
    let shop = Shop::new(kind, to, seed, 100, &mix).await;
    let what = format!("{kind:?} {to:?}, seed {seed}");
    let (outcome, dir) = shop.stage.reconcile().await;
    let verdict = shop.stage.verdict(&dir, false);
    assert!(verdict.is_exact(), "{what}: missed {:#?}, invented {:#?}", verdict.missed, verdict.invented);
    assert!(matches!(outcome, Outcome::Findings | Outcome::Clean), "{what}: {outcome:?}");
    let plan = dir.join("plan.csv");
    let (applied, said, _) = shop.apply(&plan).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    assert_eq!(applied, Outcome::Clean, "{what}: {said}");
    let before = state(&shop, to).await;
    let heard = shop.handler.as_ref().map(Handler::heard);
    let (again, said, _) = shop.apply(&plan).await.unwrap();
    assert_eq!(again, Outcome::Clean, "{what}: {said}");
    assert!(said.contains(" applied=0 "), "{what}: {said}");
    assert_eq!(state(&shop, to).await, before, "{what}: a second apply wrote something");
    assert_eq!(shop.handler.as_ref().map(Handler::heard), heard, "{what}: delivered again");
    let (_, dir) = shop.stage.reconcile().await;
    let verdict = shop.stage.verdict(&dir, true);
    assert!(
        verdict.is_exact(),
        "{what} after applying: missed {:#?}, invented {:#?}",
        verdict.missed,
        verdict.invented
    );
    let plan = std::fs::read_to_string(dir.join("plan.csv")).unwrap();
    assert_eq!(plan.lines().count(), 1, "{what}: something correctable is left:\n{plan}");
    let broken = recon::store::chain::first_broken(shop.stage.store().await.pool()).await.unwrap();
    assert_eq!(broken, None, "{what}: the history");
    assert_eq!(shop.stage.emulator.counters.writes(), 0, "{what}: a write call to the provider");
}

/// Whole tables of both sides.
async fn state(shop: &Shop, to: To) -> String {
    let store = ["ledger_entry", "object_state", "correction", "applied_event", "inbox_event"];
    let mut all = String::new();
    for table in store {
        all += &shop.stage.rows(&format!("select cast(count(*) as text) from {table}")).await.join("\n");
        all += "\n";
    }
    let entries = "select entry_id || ' ' || effect_key || ' ' || amount_minor || ' ' || reason || ' ' || applied_at_us \
         from ledger_entry order by entry_id";
    all += &shop.stage.rows(entries).await.join("\n");
    all += &shop.stage.rows("select hash from correction order by sequence").await.join("\n");
    if to == To::Ledger {
        all + &shop.books.hand().dump("shop_event").await
    } else {
        all + &shop.rows().await
    }
}

async fn check_seeds(kind: Kind, to: To) {
    if let Ok(seed) = std::env::var("RECON_SEED") {
        return Box::pin(check(kind, to, seed.parse().unwrap())).await;
    }
    let count = std::env::var("RECON_SEEDS").map_or(seeds(to), |text| text.parse().unwrap());
    for seed in 1..=count {
        Box::pin(check(kind, to, seed)).await;
    }
}

async fn by_the_ledger(kind: Kind) {
    check_seeds(kind, To::Ledger).await;
}

async fn by_statements(kind: Kind) {
    check_seeds(kind, To::Sql).await;
}

async fn by_deliveries(kind: Kind) {
    check_seeds(kind, To::Http).await;
}
