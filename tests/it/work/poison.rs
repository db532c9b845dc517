//! Objects that the provider does not answer for: each costs its own events only, and never the worker's end.

use super::shop::Shop;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use recon::config::{self, Settings};
use recon::provider::Cancel;
use recon::work::{End, Worker};
use std::sync::Arc;
use tokio::sync::Notify;

/// What one object answers instead of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Poison {
    Status(u16),
    Text(&'static str),
    Silence,
}

struct Front {
    behind: String,
    id: String,
    poison: Poison,
    asked: Arc<Notify>,
    http: reqwest::Client,
}

async fn answer(State(front): State<Arc<Front>>, uri: Uri, headers: axum::http::HeaderMap) -> Response {
    if uri.path().ends_with(&front.id) {
        front.asked.notify_one();
        return match front.poison {
            Poison::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
            Poison::Text(text) => text.into_response(),
            Poison::Silence => std::future::pending().await,
        };
    }
    let got = front.http.get(format!("{}{uri}", front.behind)).headers(headers).send().await.unwrap();
    let status = got.status();
    (status, got.bytes().await.unwrap()).into_response()
}

/// The shop's settings with a server before the emulator, that poisons one object.
async fn poisoned(shop: &Shop, id: &str, poison: Poison) -> (Settings, Arc<Notify>) {
    // Whoever is first prepares secure connections for the whole process.
    let settings = shop.settings();
    recon::provider::Client::new(&settings.providers[0], &settings.limits).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Notify::new());
    let front = Front {
        behind: shop.emulator.base_url.clone(),
        id: id.to_owned(),
        poison,
        asked: Arc::clone(&asked),
        http: reqwest::Client::builder().no_proxy().build().unwrap(),
    };
    let router = Router::new().fallback(answer).with_state(Arc::new(front));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let text = std::fs::read_to_string(shop.config()).unwrap();
    std::fs::write(shop.config(), text.replace(&shop.emulator.base_url, &url)).unwrap();
    (config::load(Some(&shop.config())).unwrap(), asked)
}

/// Ten payments' first events, and the object of one of them.
async fn ten(shop: &Shop) -> (Vec<String>, String) {
    let events: Vec<_> =
        shop.world.events.iter().filter(|event| event.kind == "charge.succeeded").take(10).collect();
    assert_eq!(events.len(), 10);
    shop.receive(events.iter().copied()).await;
    let body: serde_json::Value = serde_json::from_str(&events[4].body).unwrap();
    let charge = body["data"]["object"]["id"].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = events.iter().map(|event| event.id.clone()).collect();
    ids.swap(0, 4);
    (ids, charge)
}

const FETCH_ALL: &str = "[work]\nfetch = [\"charge.succeeded\"]\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_not_answered_costs_only_its_own_event() {
    for poison in [
        Poison::Status(500),
        Poison::Status(401),
        Poison::Status(302),
        Poison::Text("<html>"),
        Poison::Text("{\"id\":"),
    ] {
        let shop = Shop::new(31, 200, FETCH_ALL).await;
        let (ids, charge) = ten(&shop).await;
        let (settings, _) = poisoned(&shop, &charge, poison).await;
        shop.drain_with(&settings).await;
        let (status, why) = shop.end_of(&ids[0]).await;
        assert_eq!(status, "received", "{poison:?}: {why}");
        assert!(why.contains(&charge), "{poison:?}: {why}");
        for id in &ids[1..] {
            assert_eq!(shop.end_of(id).await, ("applied".into(), String::new()), "{poison:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_waits_for_an_answer_ends_at_once_when_asked_to() {
    let shop = Shop::new(31, 200, FETCH_ALL).await;
    let (ids, charge) = ten(&shop).await;
    let (settings, asked) = poisoned(&shop, &charge, Poison::Silence).await;
    // Late as it is, being interrupted does not bury it.
    shop.pass(std::time::Duration::from_hours(24 * 5));
    let (canceller, cancel) = Cancel::new();
    let worker = Worker::new(&settings, shop.store.clone(), shop.timing(), cancel).unwrap();
    let began = std::time::Instant::now();
    let stop = async {
        asked.notified().await;
        canceller.cancel();
    };
    let (ended, ()) = tokio::join!(worker.run(false, async |_: &[End]| {}), stop);
    ended.unwrap();
    assert!(began.elapsed() < std::time::Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(shop.end_of(&ids[0]).await.0, "received");
}
