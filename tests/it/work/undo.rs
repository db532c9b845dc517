//! What is booked is undone only when the provider says that it is over; and what was undone is never called applied.

use super::shop::{LATER, Shop};
use recon::demo::emulator::{Emulator, Faults};
use recon::demo::world::{Event, Stream};

const AGAIN: &str = "update inbox_event set status = 'received', attempts = 0, next_attempt_at_us = 0
                     where event_type = 'refund.created'";

/// A shop that booked a payment and its refund, and the refund's event.
async fn refunded(seed: u64) -> (Shop, Event) {
    let shop = Shop::new(seed, 300, "").await;
    let stands = |event: &&Event| {
        let of = |record: &&recon::demo::world::Record| record.id == event.subject;
        event.kind == "refund.created"
            && event.body.contains("\"status\":\"succeeded\"")
            && shop.world.records[&Stream::Refunds]
                .iter()
                .find(of)
                .is_some_and(|record| record.body.contains("\"status\":\"succeeded\""))
    };
    let refund = shop.world.events.iter().find(stands).expect("a refund that succeeded").clone();
    let payment = refund.payment.unwrap();
    let credits = ["charge.succeeded", "charge.captured"];
    let events: Vec<Event> = shop
        .events_of(payment)
        .into_iter()
        .filter(|event| credits.contains(&event.kind) || event.id == refund.id)
        .cloned()
        .collect();
    shop.receive(&events).await;
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "applied", "{:?}", shop.end_of(&refund.id).await);
    assert!(refunds(&shop, &refund).await.1 > 0);
    (shop, refund)
}

/// From now on the provider says this of the refund.
async fn says(shop: &mut Shop, refund: &Event, from: &str, to: &str) {
    let (from, to) = (format!("\"status\":\"{from}\""), format!("\"status\":\"{to}\""));
    let records = shop.world.records.get_mut(&Stream::Refunds).unwrap();
    let record = records.iter_mut().find(|record| record.id == refund.subject).unwrap();
    assert!(record.body.contains(&from), "{}", record.body);
    record.body = record.body.replace(&from, &to).into();
    let emulator = Emulator::start(&shop.world, Faults::default()).await.unwrap();
    let text = std::fs::read_to_string(shop.config()).unwrap();
    std::fs::write(shop.config(), text.replace(&shop.emulator.base_url, &emulator.base_url)).unwrap();
    std::fs::write(shop.folder.path().join("stripe.key"), &emulator.key).unwrap();
    shop.emulator = emulator;
}

/// Entries of the refund, and what they come to.
async fn refunds(shop: &Shop, refund: &Event) -> (i64, i64) {
    let of = format!("from ledger_entry where kind = 'refund' and object_id = '{}'", refund.subject);
    let entries = shop.number(&format!("select count(*) {of}")).await;
    (entries, shop.number(&format!("select cast(coalesce(sum(amount_minor), 0) as bigint) {of}")).await)
}

async fn again(shop: &Shop) {
    shop.execute(AGAIN).await;
    shop.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_lags_undoes_nothing_and_its_event_waits() {
    let (mut shop, refund) = refunded(91).await;
    let booked = refunds(&shop, &refund).await;
    says(&mut shop, &refund, "succeeded", "pending").await;
    again(&shop).await;
    assert_eq!(refunds(&shop, &refund).await, booked);
    let (status, error) = shop.end_of(&refund.id).await;
    assert!(status == "received" && error.contains(&refund.subject), "{status}: {error}");
    says(&mut shop, &refund, "pending", "succeeded").await;
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "applied");
    assert_eq!(refunds(&shop, &refund).await, booked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_is_no_longer_booked_is_left_alone() {
    let (shop, refund) = refunded(92).await;
    let booked = refunds(&shop, &refund).await;
    let text = std::fs::read_to_string(shop.config()).unwrap();
    let narrow = "mode = \"live\"\neffects = [\"credit\"]\n";
    std::fs::write(shop.config(), text.replacen("mode = \"live\"\n", narrow, 1)).unwrap();
    again(&shop).await;
    assert_eq!(refunds(&shop, &refund).await, booked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_undone_and_stands_again_is_a_dead_letter_that_names_the_entry() {
    let (mut shop, refund) = refunded(93).await;
    says(&mut shop, &refund, "succeeded", "failed").await;
    again(&shop).await;
    assert_eq!(refunds(&shop, &refund).await, (2, 0), "the refund and its undoing");
    assert_eq!(shop.end_of(&refund.id).await.0, "applied", "it undid it");
    again(&shop).await;
    assert_eq!(shop.end_of(&refund.id).await.0, "superseded");
    says(&mut shop, &refund, "failed", "succeeded").await;
    shop.pass(LATER);
    again(&shop).await;
    let (status, error) = shop.end_of(&refund.id).await;
    let entry = format!("refund:{}", refund.subject);
    assert!(status == "dead" && error.contains(&entry) && error.contains("taken back"), "{status}: {error}");
    assert_eq!(refunds(&shop, &refund).await, (2, 0), "a person decides");
    let (_, findings, plan) = shop.reconcile().await;
    assert!(findings.contains(&refund.subject), "the nightly run says so too:\n{findings}");
    shop.apply(plan).await;
    assert_eq!(refunds(&shop, &refund).await, (2, 0));
}
