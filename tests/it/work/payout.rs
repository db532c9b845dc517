//! A payout that was paid and failed days later: nothing of it stays in the books, whatever came first.

use super::shop::{LATER, OWN, Shop};
use recon::demo::emulator::{Emulator, Faults};
use recon::demo::world::{Event, Stream};

const PAYOUTS: &str = "mode = \"live\"\neffects = [\"credit\", \"refund\", \"dispute_withdrawn\", \"dispute_reinstated\", \"payout\"]\n";

/// A shop whose books hold payouts, and the event of one that was paid.
async fn shop(seed: u64, configuration: &str) -> (Shop, Event) {
    let shop = Shop::new(seed, 300, configuration).await;
    let text = std::fs::read_to_string(shop.config()).unwrap();
    std::fs::write(shop.config(), text.replacen("mode = \"live\"\n", PAYOUTS, 1)).unwrap();
    // Young enough to be listed still.
    let paid = shop.world.events.iter().find(|event| event.kind == "payout.paid").unwrap().clone();
    (shop, paid)
}

/// What the provider says when the bank sends the money back, three days later.
fn failed(paid: &Event) -> Event {
    let mut body: serde_json::Value = serde_json::from_str(&paid.body).unwrap();
    let created_s = paid.created_s + 3 * 86_400;
    body["id"] = "evt_failed".into();
    body["type"] = "payout.failed".into();
    body["created"] = created_s.into();
    body["data"]["object"]["status"] = "failed".into();
    body["data"]["object"]["failure_code"] = "account_closed".into();
    Event {
        id: "evt_failed".into(),
        kind: "payout.failed",
        created_s,
        body: body.to_string().into(),
        ..paid.clone()
    }
}

/// From now on the provider says that it failed.
async fn fail_at_the_provider(shop: &mut Shop, failed: &Event) {
    let records = shop.world.records.get_mut(&Stream::Payouts).unwrap();
    let record = records.iter_mut().find(|record| record.id == failed.subject).unwrap();
    assert!(record.body.contains("\"status\":\"paid\""), "{}", record.body);
    record.body = record.body.replace("\"status\":\"paid\"", "\"status\":\"failed\"").into();
    shop.world.events.push(failed.clone());
    shop.world.events.sort_by_key(|event| std::cmp::Reverse((event.created_s, event.sequence)));
    let emulator = Emulator::start(&shop.world, Faults::default()).await.unwrap();
    let text = std::fs::read_to_string(shop.config()).unwrap();
    std::fs::write(shop.config(), text.replace(&shop.emulator.base_url, &emulator.base_url)).unwrap();
    std::fs::write(shop.folder.path().join("stripe.key"), &emulator.key).unwrap();
    shop.emulator = emulator;
}

/// Entries of payouts, and what they come to.
async fn payouts(shop: &Shop) -> (i64, i64) {
    let entries = "select count(*) from ledger_entry where kind = 'payout'";
    let total =
        "select cast(coalesce(sum(amount_minor), 0) as bigint) from ledger_entry where kind = 'payout'";
    (shop.number(entries).await, shop.number(total).await)
}

async fn take(shop: &Shop, event: &Event) {
    shop.receive([event]).await;
    shop.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payout_that_fails_after_it_was_booked_is_undone_once() {
    let (mut shop, paid) = shop(81, "").await;
    let failed = failed(&paid);
    take(&shop, &paid).await;
    let (entries, total) = payouts(&shop).await;
    assert!(entries == 1 && total > 0, "{:?}", shop.end_of(&paid.id).await);
    fail_at_the_provider(&mut shop, &failed).await;
    for _ in 0..2 {
        take(&shop, &failed).await;
        assert_eq!(shop.end_of("evt_failed").await.0, "applied");
        assert_eq!(payouts(&shop).await, (2, 0), "the payout and its undoing");
        shop.execute("update inbox_event set status = 'received', next_attempt_at_us = 0 where event_id = 'evt_failed'").await;
    }
    take(&shop, &paid).await;
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(payouts(&shop).await, (2, 0));
    let (_, findings, _) = shop.reconcile().await;
    assert!(!findings.contains(&paid.subject), "the books are right about it:\n{findings}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payout_whose_failure_arrives_first_is_never_booked() {
    let (mut shop, paid) = shop(82, "").await;
    let failed = failed(&paid);
    fail_at_the_provider(&mut shop, &failed).await;
    take(&shop, &failed).await;
    assert_eq!(shop.end_of("evt_failed").await.0, "applied");
    take(&shop, &paid).await;
    assert_eq!(shop.end_of(&paid.id).await.0, "superseded", "{:?}", shop.end_of(&paid.id).await);
    assert_eq!(payouts(&shop).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_the_events_own_words_it_is_undone_alone_and_in_one_batch() {
    let own = OWN.replace("batch = 7", "batch = 100");
    let (alone, paid) = shop(83, &own).await;
    let failed = failed(&paid);
    take(&alone, &paid).await;
    assert_eq!(payouts(&alone).await.0, 1);
    take(&alone, &failed).await;
    assert_eq!(payouts(&alone).await, (2, 0));
    let (together, _) = shop(83, &own).await;
    together.receive([&failed, &paid]).await;
    together.drain().await;
    assert_eq!(payouts(&together).await, (2, 0), "{:?}", together.end_of("evt_failed").await);
    assert_eq!(together.emulator.counters.writes(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_books_hold_no_payouts_its_failure_is_nobodys_work() {
    let shop = Shop::new(84, 300, "").await;
    let paid = shop.world.events.iter().find(|event| event.kind == "payout.paid").unwrap().clone();
    take(&shop, &failed(&paid)).await;
    assert_eq!(shop.end_of("evt_failed").await, ("ignored".into(), "nothing_to_apply".into()));
}
