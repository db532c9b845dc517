//! How long an event may wait, and for whose trouble it pays: its own only.

use super::shop::{LATER, NOW_US, OWN, Shop};
use recon::config::{self, Settings};
use recon::demo::emulator::{Emulator, Faults};
use recon::demo::world::{Event, World};
use recon::provider::Cancel;
use recon::store::Database;
use recon::work::Worker;
use std::time::Duration;

/// The same shop while its provider cannot be reached.
fn cut_off(shop: &Shop) -> Settings {
    let up = std::fs::read_to_string(shop.config()).unwrap();
    std::fs::write(shop.config(), up.replace(&shop.emulator.base_url, "http://127.0.0.1:9")).unwrap();
    let settings = config::load(Some(&shop.config())).unwrap();
    std::fs::write(shop.config(), up).unwrap();
    settings
}

const BRISK: &str = "[limits]\nattempts_max = 2\n";

fn payment(shop: &Shop) -> (&Event, &Event) {
    let payment = shop.payment_with(&["charge.succeeded", "refund.created", "charge.refunded"]);
    (shop.event(payment, "charge.succeeded"), shop.event(payment, "refund.created"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_old_when_it_is_first_tried_has_all_of_its_time() {
    let shop = Shop::new(24, 400, BRISK).await;
    let (charge, refund) = payment(&shop);
    shop.receive([charge]).await;
    // Nobody worked for four days, and then the provider is away.
    shop.pass(Duration::from_hours(96));
    shop.drain_with(&cut_off(&shop)).await;
    assert_eq!(shop.end_of(&charge.id).await.0, "received");
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(shop.end_of(&charge.id).await.0, "applied");
    // Months later it is replayed in the middle of an outage: what was applied is not a dead letter for that.
    shop.pass(Duration::from_hours(24 * 60));
    let again = "update inbox_event set status = 'received', attempts = 0, next_attempt_at_us = 0, tried_since_us = 0";
    shop.execute(&format!("{again} where event_id = '{}'", charge.id)).await;
    shop.drain_with(&cut_off(&shop)).await;
    assert_eq!(shop.end_of(&charge.id).await.0, "received");
    shop.pass(LATER);
    shop.drain().await;
    assert!(["applied", "superseded"].contains(&&*shop.end_of(&charge.id).await.0));
    // And an old refund that comes to the worker before its payment waits for it.
    shop.execute("delete from ledger_entry").await;
    shop.execute("delete from applied_event").await;
    shop.execute("delete from inbox_event").await;
    shop.receive([refund]).await;
    shop.pass(Duration::from_hours(96));
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "parked");
    shop.receive([charge]).await;
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "applied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_the_provider_uses_up_no_attempt_and_ends_after_its_time() {
    let shop = Shop::new(24, 400, BRISK).await;
    let (charge, _) = payment(&shop);
    shop.receive([charge]).await;
    let away = cut_off(&shop);
    let mut asked = 0;
    // Every ten minutes for three days: the provider is asked less often the longer it lasts.
    for _ in 0..3 * 24 * 6 {
        asked += shop.drain_with(&away).await.values().sum::<u64>();
        shop.pass(Duration::from_mins(10));
    }
    let (status, why) = shop.end_of(&charge.id).await;
    assert_eq!(status, "received", "{why}");
    assert_eq!(shop.number("select attempts from inbox_event").await, 0, "all of its attempts are left");
    assert!((60..130).contains(&asked), "{asked} times in three days");
    shop.pass(Duration::from_hours(1));
    shop.drain_with(&away).await;
    assert_eq!(shop.end_of(&charge.id).await.0, "dead", "three days and an hour");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_event_whose_object_is_gone_is_buried_after_its_time() {
    let shop = Shop::new(24, 400, "").await;
    let (_, refund) = payment(&shop);
    shop.receive([refund]).await;
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "parked");
    // The provider forgets it.
    let empty = Emulator::start(&World::new(99, 20, NOW_US), Faults::default()).await.unwrap();
    std::fs::write(shop.folder.path().join("stripe.key"), &empty.key).unwrap();
    let text = std::fs::read_to_string(shop.config()).unwrap();
    std::fs::write(shop.config(), text.replace(&shop.emulator.base_url, &empty.base_url)).unwrap();
    let mut asked = 0;
    for _ in 0..70 {
        shop.pass(Duration::from_hours(1));
        asked += shop.drain().await.values().sum::<u64>();
    }
    assert_eq!(shop.end_of(&refund.id).await.0, "parked");
    assert!(asked <= 80, "asked {asked} times in 70 hours of one look each");
    shop.pass(Duration::from_hours(3));
    shop.drain().await;
    assert_eq!(shop.end_of(&refund.id).await.0, "dead");
}

/// What a migration, a lost right or a statement timeout does: the store answers, and not because of the event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stores_own_trouble_buries_nothing_and_is_an_error() {
    let shop = Shop::new(24, 400, "").await;
    let (charge, _) = payment(&shop);
    shop.receive([charge]).await;
    shop.execute("alter table ledger_entry rename to ledger_entry_away").await;
    for _ in 0..8 {
        let settings = shop.settings();
        let worker = Worker::new(&settings, shop.store.clone(), shop.timing(), Cancel::never()).unwrap();
        let ended = worker.run(true, async |_: &[recon::work::End]| {}).await;
        assert!(ended.is_err(), "{ended:?}");
        shop.pass(Duration::from_hours(1));
    }
    assert_eq!(shop.end_of(&charge.id).await.0, "received");
    shop.execute("alter table ledger_entry_away rename to ledger_entry").await;
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(shop.end_of(&charge.id).await.0, "applied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_may_not_take_so_long_buries_nothing() {
    let shop = Shop::new(24, 400, "").await;
    if shop.store.database() != Database::Postgres {
        return;
    }
    let (charge, _) = payment(&shop);
    shop.receive([charge]).await;
    let mut holder = shop.store.begin().await.unwrap();
    sqlx::query("lock table ledger_entry in access exclusive mode").execute(&mut *holder).await.unwrap();
    let limited = shop.hurried().await;
    for _ in 0..6 {
        let settings = shop.settings();
        let worker = Worker::new(&settings, limited.clone(), shop.timing(), Cancel::never()).unwrap();
        assert!(worker.run(true, async |_: &[recon::work::End]| {}).await.is_err());
        shop.pass(Duration::from_hours(1));
    }
    drop(holder);
    assert_eq!(shop.end_of(&charge.id).await.0, "received");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_clock_that_was_ahead_put_off_is_due_again() {
    let shop = Shop::new(33, 60, OWN).await;
    shop.receive(shop.world.events.iter().rev()).await;
    let year_us = 365 * 86_400 * 1_000_000_i64;
    // What counts is the database's clock.
    let far = shop.now_us().max(recon::clock::now_us()) + year_us;
    let near = shop.now_us() + 60_000_000;
    let first = &shop.world.events[0].id;
    shop.execute(&format!("update inbox_event set next_attempt_at_us = {far}")).await;
    shop.execute(&format!("update inbox_event set next_attempt_at_us = {near} where event_id = '{first}'"))
        .await;
    shop.drain().await;
    let left = shop.number("select count(*) from inbox_event where status = 'received'").await;
    assert_eq!(left, 1, "what waits for a minute goes on waiting");
    assert_eq!(shop.end_of(first).await.0, "received");
    let all = i64::try_from(shop.world.events.len()).unwrap();
    assert_eq!(shop.ended().await.values().sum::<i64>(), all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_attempt_under_a_clock_that_was_far_behind_uses_up_no_time() {
    let shop = Shop::new(24, 400, BRISK).await;
    let (charge, refund) = payment(&shop);
    shop.receive([charge, refund]).await;
    // The first attempt was noted under a clock that stood in 1970; waiting is counted from the receipt then.
    shop.execute("update inbox_event set tried_since_us = 1").await;
    shop.drain_with(&cut_off(&shop)).await;
    for event in [charge, refund] {
        assert_eq!(shop.end_of(&event.id).await.0, "received");
    }
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(shop.end_of(&charge.id).await.0, "applied");
}
