//! `kill -9` at seeded points under load, again and again: every event that was answered with 2xx is there.

use super::{BOTH, Receiver, Site, deliver, event, stripe};
use crate::random::Random;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SEED: u64 = 20_260_101;
const KILLS: u64 = 6;
const CLIENTS: u64 = 4;

struct Load {
    receiver: Mutex<std::net::SocketAddr>,
    /// Every event that was answered with 2xx.
    taken: Mutex<BTreeSet<String>>,
    count: AtomicU64,
    is_over: AtomicBool,
}

/// Posts new events and, now and then, one again, until it is over.
fn post(load: &Load, client: u64) {
    let mut random = Random::new(SEED + client);
    let (stripe, mut number) = (stripe(), 0);
    while !load.is_over.load(Ordering::Relaxed) {
        number += 1;
        let id = format!("evt_{client}_{:06}", if random.chance(20) { number / 2 } else { number });
        let address = *load.receiver.lock().unwrap();
        let answer = deliver(address, "stripe", &stripe.sign(event(&id)));
        if answer.is_ok_and(|answer| answer.is_taken()) {
            load.taken.lock().unwrap().insert(id);
            load.count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_2xx_has_a_stored_event_whenever_the_receiver_is_killed() {
    for (database, receive) in BOTH.into_iter().flat_map(|one| [(one, ""), (one, "spill_dir = \"spill\"")]) {
        let site = Site::new(database);
        site.configure(receive, "");
        let mut random = Random::new(SEED);
        let mut receiver: Receiver = site.start();
        let load = Load {
            receiver: Mutex::new(receiver.address),
            taken: Mutex::default(),
            count: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let load = &load;
                scope.spawn(move || post(load, client));
            }
            for _ in 0..KILLS {
                let until = load.count.load(Ordering::Relaxed) + 1 + random.below(60);
                while load.count.load(Ordering::Relaxed) < until {
                    std::thread::yield_now();
                }
                receiver.child.kill().unwrap();
                receiver.child.wait().unwrap();
                receiver = site.start();
                *load.receiver.lock().unwrap() = receiver.address;
            }
            load.is_over.store(true, Ordering::Relaxed);
        });
        receiver.wait_for("recon_spill_files 0");
        let stored: BTreeSet<String> = site.ids().await.into_iter().collect();
        let taken = load.taken.into_inner().unwrap();
        let lost: Vec<&String> = taken.difference(&stored).collect();
        assert!(lost.is_empty(), "seed {SEED}, {database:?}: answered with 2xx and not there: {lost:?}");
        assert!(taken.len() as u64 >= KILLS);
        site.said_nothing_of(&[]);
    }
}
