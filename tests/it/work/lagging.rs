//! The provider's answer lags behind its event, comes from somebody else, or is not given for a long time: nothing is
//! lost, nobody else waits, and no attempt is used up.

use super::overtaken::{AMOUNT, MADE_S, Provider, charge, deliver, net, refund};
use super::shop::{LATER, Shop};
use axum::http::StatusCode;

/// What an event's own object proves is waited for, where the provider's answer lags behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_lags_behind_its_event_loses_nothing() {
    let shop = Shop::new(8, 10, "").await;
    let provider = Provider::start(&shop).await;
    let mut pending = charge("ch_1");
    pending["status"] = "pending".into();
    pending["paid"] = false.into();
    pending["captured"] = false.into();
    pending["amount_captured"] = 0.into();
    provider.set(&pending);
    deliver(&shop, "evt_1", "charge.succeeded", MADE_S, &charge("ch_1")).await;
    shop.drain().await;
    assert_eq!(shop.end_of("evt_1").await.0, "received", "{:?}", shop.end_of("evt_1").await);
    provider.set(&charge("ch_1"));
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(net(&shop, "credit", "ch_1").await, AMOUNT);
    // Neither the charge nor the list of its refunds says so yet; then the charge does, and the list does not.
    let mut refunded = charge("ch_1");
    refunded["amount_refunded"] = AMOUNT.into();
    refunded["refunded"] = true.into();
    deliver(&shop, "evt_2", "charge.refunded", MADE_S + 10, &refunded).await;
    shop.drain().await;
    for _ in 0..2 {
        assert_eq!(shop.end_of("evt_2").await.0, "received", "{:?}", shop.end_of("evt_2").await);
        provider.set(&refunded);
        shop.pass(LATER);
        shop.drain().await;
    }
    assert_eq!(shop.end_of("evt_2").await.0, "received", "{:?}", shop.end_of("evt_2").await);
    provider.set(&refund("re_1", "ch_1", "succeeded"));
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(net(&shop, "refund", "re_1").await, AMOUNT);
    assert_eq!(shop.end_of("evt_2").await.0, "applied");
    // A pending refund is no lag: it comes with an event of its own.
    let mut other = charge("ch_2");
    other["amount_refunded"] = AMOUNT.into();
    provider.set(&other);
    provider.set(&refund("re_2", "ch_2", "pending"));
    deliver(&shop, "evt_3", "charge.refunded", MADE_S + 20, &other).await;
    shop.drain().await;
    assert_ne!(shop.end_of("evt_3").await.0, "received", "{:?}", shop.end_of("evt_3").await);
}

/// A long pause that the provider asks for, and an answer that is no object, hold up nobody and bury nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_pause_and_a_foreign_answer_cost_no_attempt() {
    let shop = Shop::new(9, 10, "").await;
    let provider = Provider::start(&shop).await;
    for id in ["ch_1", "ch_2"] {
        provider.set(&charge(id));
        deliver(&shop, &format!("evt_{id}"), "charge.succeeded", MADE_S, &charge(id)).await;
    }
    let foreign = (StatusCode::OK, "{\"message\": \"Endpoint request timed out\"}");
    provider.instead.lock().unwrap().insert("ch_1".to_owned(), foreign);
    provider.instead.lock().unwrap().insert("ch_2".to_owned(), (StatusCode::TOO_MANY_REQUESTS, "{}"));
    let before_us = shop.now_us();
    shop.drain().await;
    assert!(shop.now_us() - before_us < 60_000_000, "nobody waits for ten minutes");
    for id in ["evt_ch_1", "evt_ch_2"] {
        assert_eq!(shop.end_of(id).await.0, "received", "{:?}", shop.end_of(id).await);
    }
    assert_eq!(shop.number("select max(attempts) from inbox_event").await, 0);
    provider.instead.lock().unwrap().clear();
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(net(&shop, "credit", "ch_1").await + net(&shop, "credit", "ch_2").await, 2 * AMOUNT);
}
