//! `inbox_health.csv` of a run over the store that the receiver and the worker write: what of it is counted, and
//! how long events took.

use super::shop::{Shop, arrival, scope};
use recon::record::{Scope, Window};
use recon::store::arrivals::file_arrivals;
use recon::store::{Completion, add_refused, inbox_health, refused};
use std::collections::BTreeMap;

const DAY_US: i64 = 86_400_000_000;

/// Files an event that came at this instant and ended so many ms later.
async fn ended(shop: &Shop, event_id: &str, at_us: i64, took_ms: i64, status: &str) {
    file(shop, &scope(), event_id, b"{}", at_us).await;
    let completed_us = at_us + took_ms * 1_000;
    let sql = format!(
        "update inbox_event set status = '{status}', completed_at_us = {completed_us} where event_id = '{event_id}'"
    );
    shop.execute(&sql).await;
}

async fn file(shop: &Shop, scope: &Scope, event_id: &str, body: &[u8], at_us: i64) {
    let mut tx = shop.store.begin().await.unwrap();
    let arrival = arrival(scope, event_id, "customer.created", body, at_us);
    file_arrivals(&mut tx, &[arrival]).await.unwrap();
    tx.commit().await.unwrap();
}

async fn refuse(shop: &Shop, provider: &str, reason: &str, day_us: i64, deliveries: u64) {
    let mut tx = shop.store.begin().await.unwrap();
    add_refused(&mut tx, provider, reason, day_us, deliveries).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_tells_of_its_window_what_was_refused_what_conflicted_and_how_long_events_took() {
    let shop = Shop::new(71, 60, "").await;
    let window = Window { from_us: shop.world.from_us, until_us: shop.world.until_us };
    let at_us = window.from_us + DAY_US / 2;
    for number in 1..=200 {
        ended(&shop, &format!("evt_{number:03}"), at_us + number, number, "applied").await;
    }
    ended(&shop, "evt_ignored", at_us, 0, "ignored").await;
    // Nobody's speed: given up, waited for a person, and received before the window.
    ended(&shop, "evt_dead", at_us, 9_000_000, "dead").await;
    ended(&shop, "evt_retried", at_us, 9_000_000, "applied").await;
    ended(&shop, "evt_replayed", at_us, 9_000_000, "applied").await;
    shop.execute("update inbox_event set reason = 'replayed by carol: why' where event_id = 'evt_replayed'")
        .await;
    let act = format!(
        "insert into inbox_action values ('{}', '', 'live', 'evt_retried', 'retry', 'why', 'carol', 1)",
        scope().provider
    );
    shop.execute(&act).await;
    ended(&shop, "evt_before", window.from_us - 1, 9_000_000, "applied").await;
    ended(&shop, "evt_after", window.until_us, 9_000_000, "applied").await;
    // Waits since before the window: it still waits.
    file(&shop, &scope(), "evt_waits", b"{}", window.from_us - DAY_US).await;
    for id in ["evt_001", "evt_001", "evt_before"] {
        file(&shop, &scope(), id, b"{}", at_us + 1).await;
    }
    for (id, at_us) in [("evt_002", at_us), ("evt_002", at_us + 1), ("evt_002", window.until_us)] {
        let body = if at_us < window.until_us { &b"{\"a\":1}"[..] } else { b"{\"a\":2}" };
        file(&shop, &scope(), id, body, at_us).await;
    }
    let first_day_us = window.from_us - window.from_us.rem_euclid(DAY_US);
    let provider = &*scope().provider.clone();
    for (provider, reason, day_us, deliveries) in [
        (provider, "signature", first_day_us, 3),
        (provider, "too_old", first_day_us + DAY_US, 4),
        (provider, "signature", first_day_us - DAY_US, 100),
        (provider, "signature", window.until_us - window.until_us.rem_euclid(DAY_US) + DAY_US, 100),
        ("github", "signature", first_day_us, 7),
    ] {
        refuse(&shop, provider, reason, day_us, deliveries).await;
    }
    let health = inbox_health(&shop.store, window, shop.now_us()).await.unwrap();
    let own = &health[&scope()];
    assert_eq!(own.completion, Some(Completion { mean_ms: 100, p99_ms: 198, slowest_ms: 200 }));
    assert_eq!((own.duplicates, own.conflicting), (2, 2));
    assert_eq!((own.waiting_above_age, own.oldest_waiting_us), (1, Some(window.from_us - DAY_US)));
    let expected = BTreeMap::from([(provider.to_owned(), 7), ("github".to_owned(), 7)]);
    assert_eq!(refused(&shop.store, window).await.unwrap(), expected);

    let (_, _, plan) = shop.reconcile().await;
    let text = std::fs::read_to_string(plan.with_file_name("inbox_health.csv")).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let rows: Vec<BTreeMap<String, String>> = reader
        .records()
        .map(|row| {
            let row = row.unwrap();
            names.iter().map(str::to_owned).zip(row.iter().map(str::to_owned)).collect()
        })
        .collect();
    assert_eq!(rows.len(), 2, "{text}");
    let own = rows.iter().find(|row| row["provider"] == *provider).unwrap();
    for (name, value) in [
        ("received", "1"),
        ("applied", "202"),
        ("ignored", "1"),
        ("dead", "1"),
        ("duplicates_dropped", "2"),
        ("conflicting_deliveries", "2"),
        ("refused_deliveries", "7"),
        ("waiting_above_age", "1"),
        ("completion_mean_ms", "100"),
        ("completion_p99_ms", "198"),
        ("completion_slowest_ms", "200"),
    ] {
        assert_eq!(own[name], value, "{name}\n{text}");
    }
    let other = rows.iter().find(|row| row["provider"] == "github").unwrap();
    assert_eq!((&*other["refused_deliveries"], &*other["completion_mean_ms"]), ("7", ""), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inbox_that_nothing_ended_in_has_no_times() {
    let shop = Shop::new(72, 60, "").await;
    let window = Window { from_us: shop.world.from_us, until_us: shop.world.until_us };
    file(&shop, &scope(), "evt_1", b"{}", window.from_us).await;
    let health = inbox_health(&shop.store, window, window.from_us).await.unwrap();
    assert_eq!(health[&scope()].completion, None);
    assert_eq!(health[&scope()].waiting_above_age, 0, "not older than asked");
    ended(&shop, "evt_2", window.from_us, -5, "applied").await;
    let health = inbox_health(&shop.store, window, window.from_us).await.unwrap();
    let at_once = Completion { mean_ms: 0, p99_ms: 0, slowest_ms: 0 };
    assert_eq!(health[&scope()].completion, Some(at_once), "a clock that was put back");
}
