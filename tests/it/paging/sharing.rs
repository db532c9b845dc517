//! One limit for all processes of a store: each opens it for itself, as processes do.

use crate::postgres::Place;
use recon::provider::{Exceeded, Limiter, Timing};
use recon::record::Scope;
use recon::store::{Access, Database, LimitKey, Store};
use std::time::{Duration, Instant};
use tempfile::TempDir;

async fn opened(url: &str, times: usize) -> Vec<Store> {
    let mut stores = Vec::new();
    for _ in 0..times {
        stores.push(Store::open(url, Access::ReadWrite).await.unwrap());
    }
    stores
}

fn scope() -> Scope {
    Scope::new("stripe", "", "live")
}

/// However many ask at once, what they are given follows on each other without an overlap.
async fn nothing_overlaps(url: &str) {
    const LENGTH_US: i64 = 60_000_000;
    let key = LimitKey { scope: scope(), endpoint: "events".to_owned() };
    let mut taking = tokio::task::JoinSet::new();
    for store in opened(url, 4).await {
        for _ in 0..25 {
            let (store, key) = (store.clone(), key.clone());
            taking.spawn(async move { store.take_slots(&key, LENGTH_US).await.unwrap().first_at_us });
        }
    }
    let mut begins: Vec<i64> = taking.join_all().await;
    begins.sort_unstable();
    assert_eq!(begins.len(), 100);
    for pair in begins.windows(2) {
        assert_eq!(pair[1] - pair[0], LENGTH_US, "minutes were still free: none is lost either");
    }
    let other = LimitKey { endpoint: "charges".to_owned(), ..key };
    let store = Store::open(url, Access::ReadWrite).await.unwrap();
    let reserved = store.take_slots(&other, LENGTH_US).await.unwrap();
    assert_eq!(reserved.first_at_us, reserved.now_us, "another limit is not waited for");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_of_a_limit_never_overlap_in_sqlite() {
    let folder = TempDir::new().unwrap();
    nothing_overlaps(&format!("sqlite:{}", folder.path().join("recon.db").display())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_of_a_limit_never_overlap_in_postgres() {
    let folder = TempDir::new().unwrap();
    nothing_overlaps(&Place::new(Database::Postgres, folder.path()).url()).await;
}

/// Two limiters of 100 requests a second in all share them. That they are not slow is measured elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_together_keep_to_the_limit_of_one() {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite:{}", folder.path().join("recon.db").display());
    let started = Instant::now();
    let mut sending = tokio::task::JoinSet::new();
    for store in opened(&url, 2).await {
        sending.spawn(async move {
            let limiter = Limiter::new(100, 400, Timing::real()).shared(store, scope());
            for _ in 0..75 {
                limiter.ready("events").await;
            }
        });
    }
    sending.join_all().await;
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(1450), "150 requests in {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_of_one_process_makes_the_others_wait() {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite:{}", folder.path().join("recon.db").display());
    let stores = opened(&url, 2).await;
    let limiter = Limiter::new(20, 80, Timing::real()).shared(stores[0].clone(), scope());
    let permit = limiter.ready("events").await;
    limiter.refused("events", permit, Exceeded::Endpoint, Duration::from_mins(5));
    let key = LimitKey { scope: scope(), endpoint: "events".to_owned() };
    // The refusal is written beside what goes on.
    let mut reserved = stores[1].take_slots(&key, 1).await.unwrap();
    while reserved.first_at_us - reserved.now_us < 200_000_000 {
        tokio::task::yield_now().await;
        reserved = stores[1].take_slots(&key, 1).await.unwrap();
    }
    assert!(reserved.first_at_us - reserved.now_us <= 300_000_000);
}
