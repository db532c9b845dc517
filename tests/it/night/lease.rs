//! The lease and its clock: one holder at a time, and none for ever. On both databases.

use crate::postgres_store::{BOTH, Held};
use recon::store::lease::{self, LEASE_MS, Lease, RUN, STRANGE_MS};
use recon::store::{Access, Database, Store};
use sqlx::Row;

const HOUR_US: i64 = 3_600_000_000;

impl Held {
    async fn take(&self, holder: &str, now_us: i64) -> bool {
        lease::take(&self.store, RUN, holder, now_us).await.unwrap()
    }

    async fn renew(&self, holder: &str, now_us: i64) -> bool {
        lease::renew(&self.store, RUN, holder, now_us).await.unwrap()
    }
}

fn us(ms: u64) -> i64 {
    i64::try_from(ms).unwrap() * 1_000
}

#[tokio::test]
async fn c77_a_clock_that_was_set_back_locks_nobody_out() {
    for database in BOTH {
        let held = Held::new(database).await;
        assert!(held.take("crashed elsewhere", HOUR_US).await);
        // As far ahead as a holder may write it, and a little more: it may be a live one with a clock of its own.
        let strangest_us = HOUR_US + us(LEASE_MS) - us(STRANGE_MS);
        assert!(!held.take("next", strangest_us).await, "{database:?}: on the boundary");
        assert!(
            held.take("next", strangest_us - 1).await,
            "{database:?}: nobody writes an end that far ahead"
        );
        assert!(
            !held.renew("crashed elsewhere", HOUR_US + 1).await,
            "{database:?}: it knows that it lost it"
        );
        assert!(held.renew("next", strangest_us).await, "{database:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c77_a_clock_that_jumps_ahead_gives_it_to_one_only() {
    for database in BOTH {
        let held = Held::new(database).await;
        assert!(held.take("first", 0).await);
        let later_us = 3 * HOUR_US;
        let mut takers = Vec::new();
        for number in 0..6 {
            let store = Store::open(&held.place.url(), Access::ReadWrite).await.unwrap();
            let holder = format!("taker {number}");
            takers.push(tokio::spawn(
                async move { lease::take(&store, RUN, &holder, later_us).await.unwrap() },
            ));
        }
        let mut taken = 0;
        for taker in takers {
            taken += i32::from(taker.await.unwrap());
        }
        assert_eq!(taken, 1, "{database:?}");
        assert!(!held.renew("first", later_us).await, "{database:?}: the first one stops");
    }
}

#[tokio::test]
async fn c77_all_hosts_of_a_store_share_one_clock() {
    for database in BOTH {
        let held = Held::new(database).await;
        let now_sql = match database {
            Database::Sqlite => {
                "select cast((julianday('now') - 2440587.5) * 86400000000 as integer) as now_us"
            }
            Database::Postgres => {
                "select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as now_us"
            }
        };
        let mine = Lease::acquire_now(&held.store, RUN).await.unwrap().unwrap();
        let row = sqlx::query(now_sql).fetch_one(held.store.pool()).await.unwrap();
        let now_us: i64 = row.get("now_us");
        let row = sqlx::query("select expires_at_us from lease").fetch_one(held.store.pool()).await.unwrap();
        let left_us = row.get::<i64, _>("expires_at_us") - now_us;
        assert!(left_us > 0 && left_us <= us(LEASE_MS) + 1_000_000, "{database:?}: {left_us} µs left");
        assert!(Lease::acquire_now(&held.store, RUN).await.unwrap().is_none(), "{database:?}");
        assert!(!mine.is_lost());
        mine.release().await.unwrap();
        let next = Lease::acquire_now(&held.store, RUN).await.unwrap();
        next.expect("it was given back").release().await.unwrap();
    }
}
