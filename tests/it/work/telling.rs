//! At most once an hour, whoever tells: several workers and restarts share what was told in the store.

use super::operating::{act, said};
use super::shop::{OWN, Shop, scope};
use crate::ear::Ear;
use recon::provider::Cancel;
use recon::store::operating::Action;
use recon::work::Notifier;
use std::time::Duration;

fn texts(ear: &Ear) -> Vec<String> {
    ear.heard().iter().map(|call| call.json()["text"].as_str().unwrap().to_owned()).collect()
}

/// A shop with a refund that waits for its payment since twenty minutes.
async fn waiting_shop(ear: &Ear) -> Shop {
    let configuration = format!("{OWN}[notify]\nurl = \"{}\"\nwaiting_age = \"15m\"\n", ear.url);
    let shop = Shop::new(91, 300, &configuration).await;
    shop.receive([shop.event(shop.payment_with(&["refund.created"]), "refund.created")]).await;
    shop.drain().await;
    assert_eq!(shop.ended().await.get("parked"), Some(&1), "{:?}", shop.ended().await);
    shop.pass(Duration::from_mins(20));
    shop
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_and_restarts_tell_once_an_hour() {
    let ear = Ear::open().await;
    let shop = waiting_shop(&ear).await;
    let both: Vec<_> =
        (0..2).map(|_| shop.command(&["work", "--drain"], Duration::ZERO).spawn().unwrap()).collect();
    for child in both {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(texts(&ear).len(), 1, "{:?}", texts(&ear));
    assert!(texts(&ear)[0].contains("1 event waits"), "{:?}", texts(&ear));
    for later in [Duration::from_mins(1), Duration::from_mins(50)] {
        let output = shop.command(&["work", "--drain"], later).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(texts(&ear).len(), 1, "a restart loop does not repeat it: {:?}", texts(&ear));
    let output = shop.command(&["work", "--drain"], Duration::from_mins(62)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(texts(&ear).len(), 2, "after the hour: {:?}", texts(&ear));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_taken_is_told_again_and_nobody_waits_for_who_vanished() {
    let ear = Ear::open().await;
    let configuration = format!("[notify]\nurl = \"{}\"\nwaiting_age = \"15m\"\n", ear.url);
    let shop = Shop::new(92, 100, &configuration).await;
    shop.receive([&shop.world.events[0]]).await;
    shop.pass(Duration::from_mins(20));
    let settings = shop.settings();
    let notifier = || {
        Notifier::new(&settings.notify, shop.store.clone(), shop.timing(), Cancel::never()).unwrap().unwrap()
    };
    ear.answer(&[500]);
    notifier().look().await.unwrap();
    notifier().look().await.unwrap();
    notifier().look().await.unwrap();
    assert_eq!(texts(&ear).len(), 2, "once refused, once taken: {:?}", texts(&ear));
    // One process took the telling on and was killed before it called.
    let held_until_us = shop.now_us() + 30_000_000;
    shop.execute(&format!("update notification set told_at_us = 0, held_until_us = {held_until_us}")).await;
    notifier().look().await.unwrap();
    assert_eq!(texts(&ear).len(), 2, "somebody is at it");
    shop.pass(Duration::from_secs(31));
    notifier().look().await.unwrap();
    assert_eq!(texts(&ear).len(), 3, "nobody was");
}

/// A shop that tells, and a way to have events become dead letters at a time.
async fn dying_shop(ear: &Ear) -> Shop {
    let shop = Shop::new(93, 100, &format!("[notify]\nurl = \"{}\"\nwaiting_age = \"9h\"\n", ear.url)).await;
    shop.receive(&shop.world.events[..3]).await;
    shop
}

async fn dies(shop: &Shop, event: usize, at_us: i64) {
    let id = &shop.world.events[event].id;
    let sql = format!(
        "update inbox_event set status = 'dead', last_error = 'died', completed_at_us = {at_us} where event_id = '{id}'"
    );
    shop.execute(&sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_was_ahead_silences_no_dead_letter() {
    let ear = Ear::open().await;
    let shop = dying_shop(&ear).await;
    let settings = shop.settings();
    let notifier =
        Notifier::new(&settings.notify, shop.store.clone(), shop.timing(), Cancel::never()).unwrap().unwrap();
    let year_us = 31_536_000_000_000;
    let ahead_us = shop.now_us() + year_us;
    shop.execute(&format!("insert into notification values ('dead_letter', {ahead_us}, {ahead_us})")).await;
    dies(&shop, 0, shop.now_us()).await;
    shop.pass(Duration::from_secs(1));
    notifier.look().await.unwrap();
    assert_eq!(texts(&ear).len(), 1, "{:?}", texts(&ear));
    notifier.look().await.unwrap();
    assert_eq!(texts(&ear).len(), 1, "once an hour: {:?}", texts(&ear));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_dead_letter_is_told_once_whatever_the_clock_of_who_buried_it_said() {
    const HOUR: Duration = Duration::from_mins(61);
    let ear = Ear::open().await;
    let shop = dying_shop(&ear).await;
    let settings = shop.settings();
    let notifier =
        Notifier::new(&settings.notify, shop.store.clone(), shop.timing(), Cancel::never()).unwrap().unwrap();
    let told = |count: usize, last: &str| {
        let texts = texts(&ear);
        assert_eq!(texts.len(), count, "{texts:?}");
        assert!(texts.last().is_some_and(|text| text.contains(last)), "{texts:?}");
    };
    // A worker whose clock is a day ahead, and one whose clock is right.
    dies(&shop, 0, shop.now_us() + 86_400_000_000).await;
    dies(&shop, 1, shop.now_us()).await;
    notifier.look().await.unwrap();
    told(1, "2 events became dead letters");
    for _ in 0..2 {
        shop.pass(HOUR);
        notifier.look().await.unwrap();
        told(1, "2 events");
    }
    // A clock that was behind buried this one; the last notification is younger than that.
    dies(&shop, 2, shop.now_us() - 86_400_000_000).await;
    notifier.look().await.unwrap();
    told(2, "1 event became a dead letter");
    shop.pass(HOUR);
    notifier.look().await.unwrap();
    told(2, "1 event");
    // Whoever has it tried again hears of it when it dies again.
    let id = shop.world.events[0].id.clone();
    said(&shop, &act(Action::Retry, &id, "role fixed")).await.unwrap();
    dies(&shop, 0, shop.now_us()).await;
    notifier.look().await.unwrap();
    told(3, "1 event became a dead letter");
    // What was not taken is not told.
    shop.pass(HOUR);
    said(&shop, &act(Action::Retry, &id, "role fixed")).await.unwrap();
    dies(&shop, 0, shop.now_us()).await;
    ear.answer(&[500]);
    notifier.look().await.unwrap();
    notifier.look().await.unwrap();
    told(5, "1 event became a dead letter");
    notifier.look().await.unwrap();
    told(5, "1 event");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_dies_while_a_notification_is_sent_comes_with_the_next() {
    let ear = Ear::open().await;
    let shop = dying_shop(&ear).await;
    let settings = shop.settings();
    let notifier =
        Notifier::new(&settings.notify, shop.store.clone(), shop.timing(), Cancel::never()).unwrap().unwrap();
    dies(&shop, 0, shop.now_us()).await;
    let clock_us = std::sync::Arc::clone(&shop.clock_us);
    let died_us = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(0));
    let noted_us = std::sync::Arc::clone(&died_us);
    ear.before(move |count| {
        if count == 1 {
            noted_us.store(
                clock_us.fetch_add(5_000_000, std::sync::atomic::Ordering::SeqCst) + 1,
                std::sync::atomic::Ordering::SeqCst,
            );
        }
    });
    shop.pass(Duration::from_secs(1));
    notifier.look().await.unwrap();
    assert_eq!(texts(&ear).len(), 1, "{:?}", texts(&ear));
    dies(&shop, 1, died_us.load(std::sync::atomic::Ordering::SeqCst)).await;
    shop.pass(Duration::from_mins(61));
    notifier.look().await.unwrap();
    assert_eq!(texts(&ear).len(), 2, "{:?}", texts(&ear));
    assert!(texts(&ear)[1].contains("1 event became a dead letter"), "{:?}", texts(&ear));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_that_does_not_answer_holds_up_nobody() {
    // It takes connections, and nobody reads from them.
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", deaf.local_addr().unwrap());
    let shop = Shop::new(94, 100, &format!("[work]\nbatch = 1\n[notify]\nurl = \"{url}\"\n")).await;
    for event in 0..4 {
        shop.receive_as(&scope(), &format!("evt_{event}"), "charge.succeeded", b"{").await;
    }
    let began = std::time::Instant::now();
    let mut worker = shop.command(&["work"], Duration::from_mins(1)).spawn().unwrap();
    // One call may take ten seconds, and each event is a batch of its own.
    while shop.ended().await.get("dead") != Some(&4) && began.elapsed() < Duration::from_secs(25) {
        tokio::task::yield_now().await;
    }
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert_eq!(shop.ended().await.get("dead"), Some(&4));
}
