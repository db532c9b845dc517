//! A whole month in any order: the books are the provider's, statuses are the latest, nothing is doubled.

use super::shop::{LATER, OWN, Shop};
use recon::commands::Outcome;
use recon::demo::Rng;
use recon::demo::world::Event;
use std::collections::BTreeMap;

fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("RECON_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3_u64);
    700..700 + count.min(12)
}

/// Every event of the month, each once or twice, in an order of chance.
fn shuffled(shop: &Shop, seed: u64) -> Vec<&Event> {
    let mut rng = Rng::new(seed);
    let mut events: Vec<&Event> = shop.world.events.iter().collect();
    let again: Vec<&Event> = shop.world.events.iter().filter(|_| rng.below(4) == 0).collect();
    events.extend(again);
    for at in (1..events.len()).rev() {
        events.swap(at, rng.index(at + 1));
    }
    events
}

async fn all_ended(shop: &Shop) {
    let ended = shop.ended().await;
    assert!(!ended.contains_key("received"), "{ended:?}");
    let dead = "select event_id || ' ' || event_type || ': ' || last_error as why from inbox_event where status in ('dead', 'parked')";
    let rows = sqlx::query(dead).fetch_all(shop.store.pool()).await.unwrap();
    let dead: Vec<String> = rows.iter().map(|row| sqlx::Row::get(row, "why")).collect();
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(ended["applied"] > 0, "{ended:?}");
}

async fn is_the_provider(shop: &Shop, seed: u64) {
    let (ledger, truth) = (shop.ledger().await, shop.truth());
    for (key, amount) in &truth {
        if ledger.get(key) != Some(amount) {
            let of = shop.world.events.iter().rev().filter(|event| event.body.contains(&key.1));
            for event in of {
                println!("{} {} {:?}", event.id, event.kind, shop.end_of(&event.id).await);
            }
        }
        assert_eq!(ledger.get(key), Some(amount), "seed {seed}: {key:?}");
    }
    assert_eq!(ledger, truth, "seed {seed}");
    let states: BTreeMap<String, String> =
        shop.world.states.iter().map(|(root, status)| (root.clone(), status.to_string())).collect();
    for (root, status) in shop.states().await {
        assert_eq!(states.get(&root), Some(&status), "seed {seed}: {root}");
    }
    let doubled = "select count(*) from (select effect_key from ledger_entry where amount_minor > 0
                   group by provider, account, mode, effect_key having count(*) > 1) as doubled";
    assert_eq!(shop.number(doubled).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c09_c11_c12_a_month_in_any_order_ends_as_the_provider_has_it() {
    for seed in seeds() {
        let shop = Shop::new(seed, 250, "").await;
        let mut rng = Rng::new(seed);
        let events = shuffled(&shop, seed);
        let mut rest = &events[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(1 + rng.index(40)));
            shop.receive(now.iter().copied()).await;
            shop.drain().await;
            rest = later;
        }
        shop.pass(LATER);
        shop.drain().await;
        all_ended(&shop).await;
        assert!(shop.ended().await["superseded"] > 0, "nothing came late");
        is_the_provider(&shop, seed).await;
        let (outcome, findings, _) = shop.reconcile().await;
        assert_eq!(outcome, Outcome::Clean, "seed {seed}:\n{findings}");
        assert_eq!(shop.emulator.counters.writes(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_month_by_the_events_own_objects_ends_so_too_and_asks_less() {
    for seed in seeds() {
        let shop = Shop::new(seed, 250, OWN).await;
        shop.receive(shop.world.events.iter().rev()).await;
        shop.drain().await;
        shop.pass(LATER);
        shop.drain().await;
        all_ended(&shop).await;
        is_the_provider(&shop, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fees_and_payouts_are_booked_where_the_books_hold_them() {
    let shop = Shop::new(720, 300, "").await;
    let text = std::fs::read_to_string(shop.config()).unwrap();
    let all = "mode = \"live\"\neffects = [\"credit\", \"refund\", \"dispute_withdrawn\", \"dispute_reinstated\", \"fee\", \"payout\"]\n";
    std::fs::write(shop.config(), text.replacen("mode = \"live\"\n", all, 1)).unwrap();
    shop.receive(shuffled(&shop, 720)).await;
    shop.drain().await;
    shop.pass(LATER);
    shop.drain().await;
    all_ended(&shop).await;
    for kind in ["fee", "payout"] {
        assert!(
            shop.number(&format!("select count(*) from ledger_entry where kind = '{kind}'")).await > 0,
            "{kind}"
        );
    }
    let (outcome, findings, _) = shop.reconcile().await;
    assert_eq!(outcome, Outcome::Clean, "{findings}");
}
