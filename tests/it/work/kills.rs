//! `kill -9` of the real process at seeded points: every event ends, each effect once, nothing lost.

use super::shop::{LATER, OWN, Shop};
use crate::ear::Ear;
use recon::commands::Outcome;
use recon::demo::Rng;
use recon::provider::Cancel;
use recon::store::Database;
use recon::work::{End, Worker};
use std::collections::BTreeSet;
use std::time::Duration;

const SEEDS: u64 = 3;
const KILLS: u64 = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c77_killed_anywhere_every_event_ends_and_each_effect_is_there_once() {
    for seed in 0..SEEDS {
        let ear = Ear::open().await;
        let configuration =
            format!("[work]\nbatch = 4\n[outbox]\nurl = \"{}\"\nretry_delay = \"1s\"\n", ear.url);
        let shop = Shop::new(40 + seed, 160, &configuration).await;
        let mut rng = Rng::new(seed ^ 0x6b69_6c6c);
        shop.receive(shop.world.events.iter()).await;
        let mut killed = 0;
        let mut later = Duration::ZERO;
        for _ in 0..KILLS {
            later += LATER;
            let (asked, heard) = (shop.emulator.counters.total(), ear.heard().len());
            let more = 1 + rng.below(24);
            let by_calls = rng.below(2) == 0;
            let mut child = shop.command(&["work"], later).spawn().unwrap();
            loop {
                let is_there = if by_calls {
                    (ear.heard().len() - heard) as u64 > more / 2
                } else {
                    shop.emulator.counters.total() - asked >= more
                };
                // All may be done before: then it is idle.
                let left = shop.number("select count(*) from inbox_event where status = 'received'").await;
                if is_there || left == 0 {
                    break;
                }
                assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            }
            child.kill().unwrap();
            child.wait().unwrap();
            killed += 1;
        }
        assert_eq!(killed, KILLS);
        for _ in 0..3 {
            later += LATER;
            let output = shop.command(&["work", "--drain"], later).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let ended = shop.ended().await;
        assert!(!ended.contains_key("received") && !ended.contains_key("dead"), "seed {seed}: {ended:?}");
        assert!(!ended.contains_key("parked"), "seed {seed}: {ended:?}");
        assert_eq!(shop.ledger().await, shop.truth(), "seed {seed}");
        let told: BTreeSet<String> =
            ear.heard().iter().map(|call| call.header("idempotency-key").to_owned()).collect();
        assert_eq!(told.len(), shop.truth().len(), "seed {seed}: each effect is told at least once");
        let unsent = "select count(*) from outbox_message where sent_at_us is null";
        assert_eq!(shop.number(unsent).await, 0, "seed {seed}");
        let (outcome, findings, _) = shop.reconcile().await;
        assert_eq!(outcome, Outcome::Clean, "seed {seed}:\n{findings}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asked_to_end_it_finishes_the_batch_at_hand() {
    let shop = Shop::new(50, 120, "").await;
    shop.receive(shop.world.events.iter()).await;
    let mut child = shop.command(&["work"], LATER).spawn().unwrap();
    while shop.number("select count(*) from ledger_entry").await == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("outcome=clean findings=0 "), "{said}");
    let half = "select count(*) from inbox_event where status = 'received' and last_error <> ''";
    assert_eq!(shop.number(half).await, 0);
}

/// A booking is a task of its own on PostgreSQL. Here it waits for the write lock while its worker goes away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_booking_ends_with_its_worker() {
    let shop = Shop::new(24, 60, OWN).await;
    if shop.store.database() != Database::Postgres {
        return;
    }
    let payment = shop.payment_with(&["charge.succeeded", "invoice.paid"]);
    shop.receive([shop.event(payment, "charge.succeeded")]).await;
    let holder = shop.store.begin_write().await.unwrap();
    let settings = shop.settings();
    let worker = Worker::new(&settings, shop.store.clone(), shop.timing(), Cancel::never()).unwrap();
    let waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted
                 and database = (select oid from pg_database where datname = current_database())";
    tokio::select! {
        ended = worker.run(true, async |_: &[End]| {}) => panic!("it did not wait: {ended:?}"),
        () = async { while shop.number(waits).await == 0 {} } => {}
    }
    drop(holder);
    // Whoever waited for the lock had it before this.
    shop.store.begin_write().await.unwrap().rollback().await.unwrap();
    assert_eq!(shop.number("select count(*) from ledger_entry").await, 0);
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(shop.number("select count(*) from ledger_entry").await, 1);
}
