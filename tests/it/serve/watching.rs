//! What `/metrics` says to whoever watches: deliveries, refusals, and what waits.

use super::{BOTH, Site, event, stripe};
use crate::receive::T;

async fn execute(site: &Site, sql: &str) {
    let store = site.store().await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(store.pool()).await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_a_watcher_needs_is_in_the_metrics() {
    for database in BOTH {
        let site = Site::new(database);
        site.configure("spill_dir = \"spill\"", "");
        let receiver = site.start();
        for id in ["evt_new", "evt_new", "evt_old", "evt_parked", "evt_dead"] {
            assert_eq!(receiver.stripe(&event(id)).unwrap().status, 200);
        }
        let old = stripe().sign_with(&stripe().secret, event("evt_late"), T - 301);
        assert_eq!(receiver.deliver("stripe", &old).unwrap().status, 401);
        // Received an hour ago, by the clock of the site.
        let hour_ago_us = (T - 3_600) * 1_000_000;
        for set in [
            format!("received_at_us = {hour_ago_us} where event_id in ('evt_old', 'evt_parked')"),
            "status = 'parked' where event_id = 'evt_parked'".to_owned(),
            "status = 'dead' where event_id = 'evt_dead'".to_owned(),
        ] {
            execute(&site, &format!("update inbox_event set {set}")).await;
        }
        for line in [
            "recon_deliveries_total{provider=\"stripe\",became=\"new\"} 4",
            "recon_deliveries_total{provider=\"stripe\",became=\"duplicate\"} 1",
            "recon_refused_total{provider=\"stripe\",reason=\"too_old\"} 1",
            "recon_events_waiting 2",
            "recon_events_parked 1",
            "recon_events_dead 1",
            "recon_events_waiting_above_age 2",
            "recon_oldest_waiting_seconds 3600",
            "recon_spilled_total 0",
            "recon_spill_files 0",
            "recon_spill_unreadable 0",
            "recon_answer_seconds_count 6",
            "recon_completion_seconds_count 0",
        ] {
            receiver.wait_for(line);
        }
        assert_eq!(receiver.end(), Some(0));
    }
}
