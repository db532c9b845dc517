//! What follows from effects: a message for each, at least once and with its key; notifications.

use super::shop::{LATER, OWN, Shop};
use crate::ear::Ear;
use recon::provider::Cancel;
use recon::work::{End, Notifier, Sender, Worker};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

async fn send(shop: &Shop) -> recon::work::Sent {
    let settings = shop.settings();
    let sender = Sender::new(&settings.outbox, shop.store.clone(), shop.timing(), Cancel::never()).unwrap();
    sender.unwrap().run(true).await.unwrap()
}

fn with_outbox(ear: &Ear) -> String {
    format!("[outbox]\nurl = \"{}\"\nattempts_max = 3\n", ear.url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_effect_is_told_once_with_its_key_and_at_its_own_time() {
    let ear = Ear::open().await;
    let shop = Shop::new(31, 150, &with_outbox(&ear)).await;
    shop.receive(shop.world.events.iter().rev()).await;
    shop.drain().await;
    send(&shop).await;
    assert!(send(&shop).await == recon::work::Sent::default(), "nothing is due any more");
    let heard = ear.heard();
    let truth = shop.truth();
    assert_eq!(heard.len(), truth.len());
    let keys: BTreeSet<&str> = heard.iter().map(|call| call.header("idempotency-key")).collect();
    assert_eq!(keys.len(), heard.len(), "each key once");
    for call in &heard {
        let body = call.json();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        assert_eq!(call.header("content-type"), "application/json");
        assert_eq!(call.header("idempotency-key"), text("idempotency_key"));
        assert_eq!(
            text("idempotency_key"),
            format!("demo//live/{}", text("effect")).replace("demo", &text("provider"))
        );
        let key = (text("kind"), text("object_id"), text("currency"));
        assert_eq!(truth.get(&key), body["amount_minor"].as_i64().as_ref(), "{key:?}");
        let occurred = chrono::DateTime::parse_from_rfc3339(&text("occurred_at")).unwrap();
        assert!(occurred.timestamp_micros() < shop.world.until_us, "its own time, not today's");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c65_corrections_send_nothing_and_what_they_do_not_send_is_listed() {
    let ear = Ear::open().await;
    let shop = Shop::new(32, 150, &with_outbox(&ear)).await;
    let (_, _, plan) = shop.reconcile().await;
    shop.apply(plan).await;
    let booked = shop.number("select count(*) from ledger_entry").await;
    assert!(booked > 5);
    let suppressed =
        "select count(*) from outbox_message where suppressed_reason <> '' and sent_at_us is null";
    assert_eq!(shop.number(suppressed).await, booked);
    // The live events come after all: their effects are there, and nobody is told of them today.
    shop.receive(shop.world.events.iter().rev()).await;
    shop.drain().await;
    send(&shop).await;
    let sent = shop.number("select count(*) from outbox_message where suppressed_reason = ''").await;
    assert_eq!(i64::try_from(ear.heard().len()).unwrap(), sent);
    assert_eq!(shop.ledger().await, shop.truth());
    assert_eq!(shop.number(suppressed).await, booked, "none of the corrections' was sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_tried_again_later_and_in_the_end_given_up() {
    let ear = Ear::open().await;
    let shop = Shop::new(33, 150, &(OWN.to_owned() + &with_outbox(&ear))).await;
    let payment = shop.payment_with(&["charge.succeeded", "invoice.paid"]);
    shop.receive([shop.event(payment, "charge.succeeded")]).await;
    shop.drain().await;
    ear.answer(&[500, 429, 302]);
    for _ in 0..2 {
        let sent = send(&shop).await;
        assert_eq!((sent.failed, sent.dead), (1, 0));
        assert_eq!(send(&shop).await, recon::work::Sent::default(), "not at once");
        shop.pass(LATER);
    }
    assert_eq!(send(&shop).await.dead, 1, "a redirect is no acceptance");
    shop.pass(LATER);
    assert_eq!(send(&shop).await, recon::work::Sent::default());
    let keys: BTreeSet<String> =
        ear.heard().iter().map(|call| call.header("idempotency-key").to_owned()).collect();
    assert_eq!((keys.len(), ear.heard().len()), (1, 3));
    let dead =
        "select count(*) from outbox_message where dead_at_us is not null and last_error = 'answered 302'";
    assert_eq!(shop.number(dead).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_the_call_was_accepted_it_sends_again_under_the_same_key() {
    let ear = Ear::open().await;
    let shop = Shop::new(34, 150, &(OWN.to_owned() + &with_outbox(&ear))).await;
    let payment = shop.payment_with(&["charge.succeeded", "invoice.paid"]);
    shop.receive([shop.event(payment, "charge.succeeded")]).await;
    let child = Arc::new(Mutex::new(None::<std::process::Child>));
    let victim = Arc::clone(&child);
    ear.before(move |count| {
        if count > 1 {
            return;
        }
        // The call is accepted; whoever made it never learns of that.
        loop {
            if let Some(child) = victim.lock().unwrap().as_mut() {
                child.kill().unwrap();
                child.wait().unwrap();
                return;
            }
            std::thread::yield_now();
        }
    });
    *child.lock().unwrap() = Some(shop.command(&["work"], Duration::ZERO).spawn().unwrap());
    while ear.heard().is_empty() || child.lock().unwrap().as_mut().unwrap().try_wait().unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(shop.number("select count(*) from outbox_message where sent_at_us is null").await, 1);
    assert_eq!(shop.number("select count(*) from ledger_entry").await, 1);
    let output = shop.command(&["work", "--drain"], LATER).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let heard = ear.heard();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0].header("idempotency-key"), heard[1].header("idempotency-key"));
    assert_eq!(heard[0].body, heard[1].body);
    assert_eq!(shop.number("select count(*) from outbox_message where sent_at_us is not null").await, 1);
    assert_eq!(shop.number("select count(*) from ledger_entry").await, 1);
}

fn texts(ear: &Ear) -> Vec<String> {
    ear.heard().iter().map(|call| call.json()["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_team_is_told_of_dead_letters_waiting_events_and_late_answers_once_an_hour() {
    let ear = Ear::open().await;
    let configuration =
        format!("[notify]\nurl = \"{}\"\nwaiting_age = \"15m\"\nduplicates_per_hour = 2\n", ear.url);
    let shop = Shop::new(35, 100, &configuration).await;
    let settings = shop.settings();
    let notifier =
        Notifier::new(&settings.notify, shop.store.clone(), shop.timing(), Cancel::never()).unwrap().unwrap();
    let worker = Worker::new(&settings, shop.store.clone(), shop.timing(), Cancel::never()).unwrap();
    let scope = super::shop::scope();
    for id in ["evt_a", "evt_b"] {
        shop.receive_as(&scope, id, "charge.succeeded", b"{carol@example.com").await;
        worker.run(true, async |ends: &[End]| notifier.after(ends)).await.unwrap();
        notifier.look().await.unwrap();
    }
    assert_eq!(texts(&ear).len(), 1, "{:?}", texts(&ear));
    assert!(texts(&ear)[0].contains("dead letter") && !texts(&ear)[0].contains("carol"), "{:?}", texts(&ear));
    notifier.look().await.unwrap();
    assert_eq!(texts(&ear).len(), 1, "all is well otherwise");
    let event = &shop.world.events[0];
    for _ in 0..4 {
        shop.receive([event]).await;
    }
    shop.pass(Duration::from_mins(20));
    notifier.look().await.unwrap();
    notifier.look().await.unwrap();
    let told = texts(&ear);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[1].contains("1 event waits for longer than 15 min"), "{told:?}");
    assert!(told[2].contains("3 repeated deliveries") && told[2].contains("alarm about latency"), "{told:?}");
    shop.pass(Duration::from_mins(61));
    notifier.look().await.unwrap();
    let told = texts(&ear);
    assert_eq!(
        told.len(),
        5,
        "it still waits, nothing came twice lately, and one died within the hour: {told:?}"
    );
    assert!(told[3].contains("1 event became a dead letter and is not tried again"), "{told:?}");
    let counts = told.iter().fold(BTreeMap::new(), |mut counts: BTreeMap<&str, u32>, text| {
        *counts.entry(text).or_default() += 1;
        counts
    });
    assert_eq!(counts.len(), 3);
}
