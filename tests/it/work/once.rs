//! Each effect once: the same event twice, fifty at a time, two types for one payment, live and backfill, rivals.

use super::shop::{LATER, OWN, Shop, arrival, scope};
use recon::commands::Outcome;
use recon::provider::Cancel;
use recon::record::EventKey;
use recon::store::arrivals::file_arrivals;
use recon::store::{Access, Store, is_busy};
use recon::work::{End, Worker};

const CREDITS: &str = "select count(*) from ledger_entry where kind = 'credit'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c01_the_same_event_twice_gives_one_effect() {
    let shop = Shop::new(11, 120, "").await;
    let event = shop.event(shop.payment_with(&["charge.succeeded"]), "charge.succeeded");
    shop.receive([event]).await;
    shop.drain().await;
    assert_eq!(shop.end_of(&event.id).await.0, "applied");
    shop.receive([event]).await;
    assert!(shop.drain().await.is_empty(), "a second delivery is due for nobody");
    // Even where somebody makes it due again, with or without its dedupe row.
    for sql in ["select 1", "delete from applied_event"] {
        shop.execute(sql).await;
        shop.execute("update inbox_event set status = 'received', next_attempt_at_us = 0").await;
        shop.drain().await;
        assert_eq!(shop.number(CREDITS).await, 1);
        assert_eq!(shop.end_of(&event.id).await.0, "applied");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c02_fifty_in_parallel_give_one_effect() {
    let shop = Shop::new(12, 120, OWN).await;
    let event = shop.event(shop.payment_with(&["charge.succeeded", "invoice.paid"]), "charge.succeeded");
    let mut deliveries = Vec::new();
    for number in 0..50 {
        // Fifty deliveries of one event, and fifty events that announce one effect.
        let store = Store::open(&shop.url(), Access::ReadWrite).await.unwrap();
        let other_id = format!("evt_copy{number}");
        let copy = event.body.replace(&event.id, &other_id);
        let arrivals = [
            arrival(&scope(), &event.id, event.kind, event.body.as_bytes(), shop.now_us()),
            arrival(&scope(), &other_id, event.kind, copy.as_bytes(), shop.now_us()),
        ];
        deliveries.push(tokio::spawn(async move {
            for attempt in 1.. {
                let mut tx = store.begin().await.unwrap();
                match file_arrivals(&mut tx, &arrivals).await {
                    Ok(_) => {
                        tx.commit().await.unwrap();
                        break;
                    }
                    Err(error) => assert!(attempt < 20 && is_busy(&error), "{error:#}"),
                }
            }
            store.close().await;
        }));
    }
    for delivery in deliveries {
        delivery.await.unwrap();
    }
    assert_eq!(shop.number("select deliveries from inbox_event where deliveries > 1").await, 50);
    work_side_by_side(&shop, 6).await;
    assert_eq!(shop.number(CREDITS).await, 1);
    assert_eq!(shop.number("select count(*) from ledger_entry").await, 1);
    assert_eq!(shop.ended().await, [("applied".to_owned(), 51)].into());
    assert_eq!(shop.number("select count(*) from applied_event").await, 51);
}

/// So many workers with connections of their own, until nothing is due.
async fn work_side_by_side(shop: &Shop, count: usize) {
    let mut workers = Vec::new();
    for _ in 0..count {
        let (settings, timing) = (shop.settings(), shop.timing());
        workers.push(tokio::spawn(async move {
            let store = Store::open(&settings.store_url, Access::ReadWrite).await.unwrap();
            let worker = Worker::new(&settings, store.clone(), timing, Cancel::never()).unwrap();
            let mut errors = 0;
            loop {
                match worker.run(true, async |_: &[End]| {}).await {
                    Ok(_) => break,
                    // Busy: what was claimed is due again.
                    Err(error) => assert!(errors < 20 && is_busy(&error), "{error:#}"),
                }
                errors += 1;
            }
            store.close().await;
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    shop.pass(LATER);
    shop.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c73_workers_side_by_side_neither_deadlock_nor_double() {
    let shop = Shop::new(13, 400, "[work]\nbatch = 9\n").await;
    shop.receive(shop.world.events.iter()).await;
    work_side_by_side(&shop, 4).await;
    let ended = shop.ended().await;
    assert!(!ended.contains_key("received") && !ended.contains_key("dead"), "{ended:?}");
    assert_eq!(shop.ledger().await, shop.truth());
    let (outcome, findings, _) = shop.reconcile().await;
    assert_eq!(outcome, Outcome::Clean, "{findings}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c04_two_event_types_for_one_payment_give_one_credit() {
    let shop = Shop::new(14, 300, "").await;
    let payment = shop.payment_with(&["charge.succeeded", "payment_intent.succeeded", "invoice.paid"]);
    for kind in ["invoice.paid", "payment_intent.succeeded", "charge.succeeded"] {
        shop.receive([shop.event(payment, kind)]).await;
        shop.drain().await;
        assert_eq!(shop.number(CREDITS).await, 1, "{kind}");
        let (status, why) = shop.end_of(&shop.event(payment, kind).id).await;
        assert!(["applied", "superseded"].contains(&&*status), "{kind}: {status} {why}");
    }
    let named = shop.number("select count(*) from applied_event").await;
    assert_eq!(named, 3, "each event is known as processed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c63_live_and_backfill_share_one_key_in_either_order() {
    let shop = Shop::new(15, 250, "").await;
    // Half of the month arrives; the run books the rest; then everything arrives after all.
    let half: Vec<_> = shop.world.events.iter().rev().enumerate().filter(|(at, _)| at % 2 == 0).collect();
    shop.receive(half.into_iter().map(|(_, event)| event)).await;
    shop.drain().await;
    let (_, _, plan) = shop.reconcile().await;
    shop.apply(plan).await;
    shop.receive(shop.world.events.iter().rev()).await;
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(shop.ledger().await, shop.truth());
    let (outcome, findings, plan) = shop.reconcile().await;
    assert_eq!(outcome, Outcome::Clean, "{findings}");
    assert_eq!(std::fs::read_to_string(plan).unwrap().lines().count(), 1, "nothing is left to correct");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c72_new_duplicate_new_in_one_batch() {
    let shop = Shop::new(16, 200, OWN).await;
    let charges: Vec<_> =
        shop.world.events.iter().rev().filter(|event| event.kind == "charge.succeeded").take(3).collect();
    shop.receive([charges[1]]).await;
    shop.drain().await;
    let before = shop.number(CREDITS).await;
    shop.receive(charges.iter().copied()).await;
    shop.execute("update inbox_event set status = 'received', next_attempt_at_us = 0").await;
    let tally = shop.drain().await;
    assert_eq!(tally.get("applied"), Some(&3), "{tally:?}");
    let captured = shop.number(CREDITS).await;
    assert!(before <= 1 && captured > before && captured <= 3, "{before} then {captured}");
    assert_eq!(shop.number("select count(*) from ledger_entry").await, captured);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_amount_under_the_same_effect_is_a_dead_letter_that_names_the_entry() {
    let shop = Shop::new(17, 120, OWN).await;
    let event =
        shop.event(shop.payment_with(&["charge.succeeded", "payment_intent.succeeded"]), "charge.succeeded");
    shop.receive([event]).await;
    shop.drain().await;
    let booked = shop.ledger().await;
    let amount = booked.values().next().unwrap().to_string();
    let more = event.body.replace(&event.id, "evt_more").replace(&amount, &format!("{amount}1"));
    shop.receive_as(&scope(), "evt_more", event.kind, more.as_bytes()).await;
    shop.drain().await;
    let (status, why) = shop.end_of("evt_more").await;
    assert_eq!(status, "dead");
    assert!(why.contains("is booked as demo//live/credit:ch_") || why.contains("is booked as "), "{why}");
    assert_eq!(shop.ledger().await, booked);
    let key = EventKey { scope: scope(), event_id: "evt_more".to_owned() };
    let known = format!("select count(*) from applied_event where event_id = '{}'", key.event_id);
    assert_eq!(shop.number(&known).await, 0, "a conflict leaves no key behind");
}
