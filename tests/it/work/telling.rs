//! At most once an hour, whoever tells: several workers and restarts share what was told in the store.

use super::ear::Ear;
use super::shop::{OWN, Shop};
use recon::provider::Cancel;
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
    assert!(texts(&ear)[0].contains("1 event(s) wait"), "{:?}", texts(&ear));
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
