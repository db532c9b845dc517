//! The emulator and its world, held against the provider's documentation and against themselves.

use recon::demo::emulator::{Change, Faults, RateLimit, RetryAfter};
use recon::demo::faults::{Fault, Mix, plant};
use recon::demo::handlers::books;
use recon::demo::{Emulator, Stream, World, deliver};
use recon::record::EffectKind;
use recon::store::{Access, Store};
use reqwest::Client;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// 2026-09-15T12:00:00Z.
const NOW_US: i64 = 1_789_473_600_000_000;

fn client() -> Client {
    // A provider is installed once for the process; a second call says so and changes nothing.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder().build().unwrap()
}

struct Api {
    client: Client,
    emulator: Emulator,
}

impl Api {
    async fn start(world: &World, faults: Faults) -> Self {
        Self { client: client(), emulator: Emulator::start(world, faults).await.unwrap() }
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let url = format!("{}/v1/{path}", self.emulator.base_url);
        let response = self.client.get(url).bearer_auth(&self.emulator.key).send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
    }

    /// Every id of a list, page by page.
    async fn all(&self, list: &str, query: &str, limit: usize) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        loop {
            let after = ids.last().map_or(String::new(), |id| format!("&starting_after={id}"));
            let (status, page) = self.get(&format!("{list}?limit={limit}{query}{after}")).await;
            assert_eq!(status, 200, "{page}");
            ids.extend(ids_of(&page));
            if page["has_more"] != true {
                return ids;
            }
        }
    }
}

fn ids_of(page: &Value) -> Vec<String> {
    let rows = page["data"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

fn records(world: &World, stream: Stream) -> Vec<(String, i64)> {
    if stream == Stream::Events {
        let listed = world.events.iter().filter(|event| event.created_s >= world.events_from_s());
        return listed.map(|event| (event.id.clone(), event.created_s)).collect();
    }
    world.records[&stream].iter().map(|record| (record.id.clone(), record.created_s)).collect()
}

#[tokio::test]
async fn every_record_is_listed_once_newest_first() {
    let world = World::new(1, 600, NOW_US);
    let api = Api::start(&world, Faults::default()).await;
    for stream in Stream::ALL {
        let expected: Vec<String> = records(&world, stream).into_iter().map(|(id, _)| id).collect();
        assert!(!expected.is_empty(), "{stream:?}");
        assert_eq!(api.all(stream.path(), "", 7).await, expected, "{stream:?}");
    }
    assert!(world.events.len() > records(&world, Stream::Events).len(), "some events are too old to list");
    assert_eq!(api.emulator.counters.writes(), 0);
}

#[tokio::test]
async fn bounds_are_exact_and_cursors_go_both_ways() {
    let world = World::new(2, 500, NOW_US);
    let api = Api::start(&world, Faults::default()).await;
    let all = records(&world, Stream::Charges);
    let (edge_id, edge_s) = all[all.len() / 2].clone();
    for (query, keeps) in [
        (format!("&created[gte]={edge_s}"), Box::new(move |s| s >= edge_s) as Box<dyn Fn(i64) -> bool>),
        (format!("&created%5Bgt%5D={edge_s}"), Box::new(move |s| s > edge_s)),
        (format!("&created[lt]={edge_s}"), Box::new(move |s| s < edge_s)),
        (format!("&created[lte]={edge_s}"), Box::new(move |s| s <= edge_s)),
        (format!("&created={edge_s}"), Box::new(move |s| s == edge_s)),
        (
            format!("&created[gte]={}&created[lt]={edge_s}", edge_s - 86_400),
            Box::new(move |s| (edge_s - 86_400..edge_s).contains(&s)),
        ),
    ] {
        let expected: Vec<String> = all.iter().filter(|(_, s)| keeps(*s)).map(|(id, _)| id.clone()).collect();
        assert_eq!(api.all("charges", &query, 10).await, expected, "{query}");
    }
    let place = all.len() / 2;
    let (_, page) = api.get(&format!("charges?limit=3&ending_before={edge_id}")).await;
    let newer: Vec<String> = all[place - 3..place].iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(ids_of(&page), newer);
    assert_eq!(page["has_more"], true);
    let (_, page) = api.get(&format!("charges?limit=100&ending_before={}", all[3].0)).await;
    assert_eq!((ids_of(&page).len(), &page["has_more"]), (3, &Value::Bool(false)));
}

#[tokio::test]
async fn references_are_shown_whole_where_asked() {
    let world = World::new(3, 500, NOW_US);
    let api = Api::start(&world, Faults::default()).await;
    let (_, page) = api.get("charges?limit=100&expand[]=data.balance_transaction").await;
    let charges = page["data"].as_array().unwrap();
    assert!(charges.iter().any(|charge| charge["balance_transaction"]["object"] == "balance_transaction"));
    assert!(charges.iter().all(|charge| !charge["balance_transaction"].is_string()));
    let (_, page) = api.get("charges?limit=100").await;
    assert!(page["data"].as_array().unwrap().iter().all(|charge| !charge["balance_transaction"].is_object()));

    let (_, page) = api.get("invoices?limit=100&expand[]=data.payments").await;
    let payment = &page["data"][0]["payments"]["data"][0]["payment"]["payment_intent"];
    assert!(payment.as_str().unwrap().starts_with("pi_"), "{payment}");
    let (_, page) = api.get("invoices?limit=100").await;
    assert!(page["data"][0].get("payments").is_none());

    let id = page["data"][0]["id"].as_str().unwrap();
    let (status, one) = api.get(&format!("invoices/{id}?expand[]=payments")).await;
    assert_eq!((status, &one["id"]), (200, &page["data"][0]["id"]));
    assert_eq!(one["payments"]["data"][0]["payment"]["type"], "payment_intent");
}

#[tokio::test]
async fn events_are_filtered_by_type_and_delivery() {
    let mut world = World::new(4, 500, NOW_US);
    plant(&mut world, 4, &Mix::only(Fault::InFlightRetried));
    let api = Api::start(&world, Faults::default()).await;
    let of = |keeps: &dyn Fn(&str) -> bool| -> Vec<String> {
        let listed = world.events.iter().filter(|event| event.created_s >= world.events_from_s());
        listed.filter(|event| keeps(event.kind)).map(|event| event.id.clone()).collect()
    };
    let refunded = of(&|kind| kind == "charge.refunded");
    assert_eq!(api.all("events", "&type=charge.refunded", 5).await, refunded);
    let charge = of(&|kind| kind.starts_with("charge."));
    assert_eq!(api.all("events", "&type=charge.*", 50).await, charge);
    let two = of(&|kind| matches!(kind, "invoice.paid" | "refund.created"));
    assert_eq!(api.all("events", "&types[]=invoice.paid&types[]=refund.created", 50).await, two);
    let pending = api.all("events", "&delivery_success=false", 5).await;
    let expected: Vec<String> = world
        .events
        .iter()
        .filter(|event| event.pending_webhooks > 0)
        .map(|event| event.id.clone())
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(pending, expected);
}

#[tokio::test]
async fn refusals_are_the_providers() {
    let world = World::new(5, 300, NOW_US);
    let api = Api::start(&world, Faults::default()).await;
    for (path, status, code, param) in [
        ("charges?starting_after=ch_nobody", 400, "resource_missing", "starting_after"),
        ("charges?ending_before=ch_nobody", 400, "resource_missing", "ending_before"),
        ("charges/ch_nobody", 404, "resource_missing", "id"),
        ("charges?limit=101", 400, "parameter_invalid_integer", "limit"),
        ("charges?limit=0", 400, "parameter_invalid_integer", "limit"),
        ("charges?updated[gte]=5", 400, "parameter_unknown", "updated[gte]"),
        ("charges?type=x", 400, "parameter_unknown", "type"),
        ("charges?expand[]=data.nonsense", 400, "parameter_invalid", "expand"),
        ("charges?created[gte]=soon", 400, "parameter_invalid_integer", "created[gte]"),
    ] {
        let (answered, body) = api.get(path).await;
        assert_eq!(
            (answered, body["error"]["code"].as_str(), body["error"]["param"].as_str()),
            (status, Some(code), Some(param)),
            "{path}"
        );
    }
    assert_eq!(api.get("nonsense").await.0, 404);
    let too_old = world.events.iter().find(|event| event.created_s < world.events_from_s()).unwrap();
    assert_eq!(api.get(&format!("events/{}", too_old.id)).await.0, 404, "events are forgotten after 30 days");

    let url = format!("{}/v1/charges", api.emulator.base_url);
    let send = |request: reqwest::RequestBuilder| async { request.send().await.unwrap().status().as_u16() };
    assert_eq!(send(api.client.get(&url)).await, 401);
    assert_eq!(send(api.client.get(&url).bearer_auth("sk_live_wrong")).await, 401);
    assert_eq!(send(api.client.get(&url).basic_auth(&api.emulator.key, Some(""))).await, 200);
    assert_eq!(
        send(api.client.get(&url).bearer_auth(&api.emulator.key).header("Stripe-Account", "acct_nobody"))
            .await,
        403
    );
    assert_eq!(send(api.client.post(&url).bearer_auth(&api.emulator.key)).await, 405);
    assert_eq!(api.emulator.counters.writes(), 1);
}

#[tokio::test]
async fn a_connected_account_has_its_own_lists() {
    let platform = World::new(6, 200, NOW_US);
    let mut connected = World::new(7, 200, NOW_US);
    connected.account = "acct_1".to_owned();
    let emulator = Emulator::start_accounts(&[&platform, &connected], Faults::default()).await.unwrap();
    let url = format!("{}/v1/charges?limit=1", emulator.base_url);
    let request = client().get(url).bearer_auth(&emulator.key).header("Stripe-Account", "acct_1");
    let page: Value = serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(ids_of(&page), [connected.records[&Stream::Charges][0].id.clone()]);
}

#[tokio::test]
async fn c30_c31_limits_and_locks_answer_429_in_their_own_ways() {
    let world = World::new(8, 200, NOW_US);
    for (retry_after, expected) in [
        (RetryAfter::None, None),
        (RetryAfter::Seconds(7), Some("7")),
        (RetryAfter::Date(60), Some(" GMT")),
        (RetryAfter::Text("soon".to_owned()), Some("soon")),
    ] {
        let limit = RateLimit { endpoint_per_second: 2, account_per_second: 100, retry_after };
        let faults = Faults { rate_limit: Some(limit), ..Faults::default() };
        let emulator = Emulator::start(&world, faults).await.unwrap();
        let url = format!("{}/v1/charges", emulator.base_url);
        let client = client();
        let mut refused = None;
        for _ in 0..20 {
            let response = client.get(&url).bearer_auth(&emulator.key).send().await.unwrap();
            if response.status() == 429 {
                refused = Some(response);
                break;
            }
        }
        let refused = refused.expect("2 requests a second allow no 20 at once");
        assert_eq!(refused.headers()["stripe-rate-limited-reason"], "endpoint-rate");
        let given = refused.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(given.is_some(), expected.is_some());
        assert!(given.unwrap_or_default().ends_with(expected.unwrap_or_default()));
    }
    let faults = Faults { lock_timeout_per_mille: 1000, ..Faults::default() };
    let api = Api::start(&world, faults).await;
    for status in [429, 429, 200] {
        let (answered, body) = api.get("charges").await;
        assert_eq!(answered, status);
        assert_eq!(body["error"]["code"] == "lock_timeout", status == 429);
    }
    assert_eq!(api.emulator.counters.answers(429), 2);
}

#[tokio::test]
async fn broken_answers_are_broken_as_asked() {
    let world = World::new(9, 200, NOW_US);
    let client = client();
    let ask = async |faults: Faults| {
        let emulator = Emulator::start(&world, faults).await.unwrap();
        let url = format!("{}/v1/charges", emulator.base_url);
        match client.get(url).bearer_auth(&emulator.key).send().await {
            Ok(response) => (response.status().as_u16(), response.text().await),
            Err(error) => (0, Err(error)),
        }
    };
    let (status, body) = ask(Faults { server_error_per_mille: 1000, ..Faults::default() }).await;
    assert!(status >= 500 && body.is_ok());
    let (status, body) = ask(Faults { truncated_per_mille: 1000, ..Faults::default() }).await;
    assert_eq!((status, serde_json::from_str::<Value>(&body.unwrap()).is_err()), (200, true));
    let (status, body) = ask(Faults { html_per_mille: 1000, ..Faults::default() }).await;
    assert!(status == 200 && body.unwrap().starts_with("<html>"));
    let (status, body) = ask(Faults { dropped_per_mille: 1000, ..Faults::default() }).await;
    assert!(matches!(status, 0 | 200) && body.is_err(), "the connection ends before or within the body");
    let latency = Faults { page_latency: Duration::from_millis(1), ..Faults::default() };
    assert_eq!(ask(latency).await.0, 200);
}

#[tokio::test]
async fn c17_c21_lists_change_while_somebody_pages() {
    let world = World::new(10, 400, NOW_US);
    let charges = &world.records[&Stream::Charges];
    let late = charges[20].clone();
    let mut newcomer = charges[0].clone();
    newcomer.body = newcomer.body.replace(&newcomer.id, "ch_newcomer").into();
    newcomer.id = "ch_newcomer".to_owned();
    newcomer.created_s = NOW_US / 1_000_000;
    let faults = Faults {
        changes: vec![
            (Stream::Charges, 1, Change::Insert(newcomer)),
            (Stream::Charges, 4, Change::Reveal(late.id.clone())),
        ],
        vanishing_cursors: vec![(Stream::Charges, 2)],
        empty_pages: vec![(Stream::Refunds, 1, false)],
        ..Faults::default()
    };
    let api = Api::start(&world, faults).await;
    let (_, first) = api.get("charges?limit=5").await;
    assert_eq!(ids_of(&first)[0], charges[0].id);
    let (_, second) = api.get(&format!("charges?limit=5&starting_after={}", ids_of(&first)[4])).await;
    let gone = ids_of(&second)[4].clone();
    let (status, third) = api.get(&format!("charges?limit=5&starting_after={gone}")).await;
    assert_eq!((status, third["error"]["param"].as_str()), (400, Some("starting_after")));
    let (_, top) = api.get("charges?limit=100").await;
    assert_eq!(ids_of(&top)[0], "ch_newcomer");
    assert!(!ids_of(&top).contains(&late.id));
    let (_, top) = api.get("charges?limit=100").await;
    assert!(ids_of(&top).contains(&late.id), "shown after four requests");
    let (_, empty) = api.get("refunds?limit=5").await;
    assert_eq!((ids_of(&empty).len(), &empty["has_more"]), (0, &Value::Bool(false)));
    assert_eq!(ids_of(&api.get("refunds?limit=5").await.1).len(), 5);
}

#[test]
fn one_seed_gives_one_world() {
    let bytes = |seed: u64| {
        let mut world = World::new(seed, 400, NOW_US);
        let planted = plant(&mut world, seed, &Mix::each(1));
        let shop = books(&world, &planted, seed);
        let events: String = world.events.iter().map(|event| &*event.body).collect();
        let records: String = world.records.values().flatten().map(|record| &*record.body).collect();
        (
            events,
            records,
            format!("{:?}{:?}{:?}", shop.inbox, shop.ledger, shop.states),
            format!("{planted:?}"),
        )
    };
    assert!(bytes(11) == bytes(11));
    assert!(bytes(11).0 != bytes(12).0);
}

/// The provider's own balance, read from the wire form alone, against the truth of the stories.
#[test]
fn the_truth_is_what_the_balance_says() {
    for seed in 0..20 {
        let mut world = World::new(seed, 500, NOW_US);
        plant(&mut world, seed, &Mix::each(1));
        let own = |currency: &str| matches!(currency, "usd" | "eur" | "brl");
        let mut truth: BTreeMap<String, i64> = BTreeMap::new();
        for effect in world.truth.iter().filter(|effect| own(effect.currency)) {
            *truth.entry(effect.currency.to_owned()).or_default() += effect.kind.sign() * effect.amount_minor;
        }
        let mut balance: BTreeMap<String, i64> = BTreeMap::new();
        let mut converted = 0;
        for record in &world.records[&Stream::BalanceTransactions] {
            let movement: Value = serde_json::from_str(&record.body).unwrap();
            let amount = movement["amount"].as_i64().unwrap();
            assert_eq!(movement["net"].as_i64().unwrap(), amount - movement["fee"].as_i64().unwrap());
            if movement["exchange_rate"].is_null() {
                *balance.entry(movement["currency"].as_str().unwrap().to_owned()).or_default() += amount;
            } else {
                converted += 1;
            }
        }
        assert_eq!(truth, balance, "seed {seed}");
        let converted_truth = world.truth.iter().filter(|effect| !own(effect.currency)).count();
        assert!(converted >= converted_truth, "seed {seed}");
    }
}

/// What the shop holds, without any fault, is the truth: an honest and a naive handler that got their
/// events rightly.
#[test]
fn without_faults_the_books_are_the_truth() {
    for seed in 0..40 {
        let world = World::new(seed, 400, NOW_US);
        let shop = books(&world, &[], seed);
        let mut truth: BTreeMap<(EffectKind, &str), i64> = BTreeMap::new();
        for effect in world.truth.iter().filter(|effect| effect.kind != EffectKind::Payout) {
            *truth.entry((effect.kind, effect.currency)).or_default() += effect.amount_minor;
        }
        let mut booked: BTreeMap<(EffectKind, &str), i64> = BTreeMap::new();
        for row in &shop.ledger {
            *booked.entry((row.kind, row.currency)).or_default() += row.amount_minor;
        }
        booked.retain(|key, sum| *sum != 0 || truth.contains_key(key));
        assert_eq!(booked, truth, "seed {seed}");
        for state in &shop.states {
            assert_eq!(state.status, world.states[&state.object_id], "seed {seed}: {}", state.object_id);
        }
        let keys: BTreeSet<&str> = shop.ledger.iter().map(|row| &*row.effect_key).collect();
        assert_eq!(keys.len(), shop.ledger.len(), "seed {seed}: effect keys are unique");
    }
}

/// The money of the expected findings is exactly what books and truth differ by, and every status that
/// differs belongs to a payment with an expected finding.
#[test]
fn expected_findings_explain_every_difference() {
    for seed in 0..60 {
        let mut world = World::new(seed, 300, NOW_US);
        let planted = plant(&mut world, seed, &Mix::random(seed, 25));
        let shop = books(&world, &planted, seed);
        let inside = |at_us: i64| world.from_us <= at_us && at_us < world.until_us;
        let quiet: BTreeSet<&str> = planted
            .iter()
            .filter(|one| matches!(one.fault, Fault::InFlightRetried))
            .map(|one| &*one.root_id)
            .collect();
        let mut open: BTreeMap<(EffectKind, String), i64> = BTreeMap::new();
        for effect in &world.truth {
            let is_judged = inside(effect.occurred_s * 1_000_000) && !quiet.contains(&*effect.root_id);
            if effect.kind != EffectKind::Payout && is_judged {
                *open.entry((effect.kind, effect.currency.to_owned())).or_default() +=
                    effect.kind.sign() * effect.amount_minor;
            }
        }
        for row in shop.ledger.iter().filter(|row| inside(row.applied_us)) {
            *open.entry((row.kind, row.currency.to_owned())).or_default() -=
                row.kind.sign() * row.amount_minor;
        }
        let has_other_currency = planted.iter().any(|one| one.fault == Fault::OtherCurrency);
        for expected in planted.iter().flat_map(|one| &one.expected) {
            if let (Some(kind), Some(minor)) = (expected.effect, expected.difference_minor) {
                *open.entry((kind, expected.currency.clone())).or_default() -= minor;
            }
        }
        if !has_other_currency {
            assert!(open.values().all(|minor| *minor == 0), "seed {seed}: {open:?}");
        }
        let explained: BTreeSet<&str> =
            planted.iter().filter(|one| !one.expected.is_empty()).map(|one| &*one.root_id).collect();
        for state in &shop.states {
            let is_right = state.status == world.states[&state.object_id];
            assert!(is_right || explained.contains(&*state.object_id), "seed {seed}: {}", state.object_id);
        }
    }
}

#[tokio::test]
async fn the_shop_is_written_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("recon.db").display());
    let store = Store::open(&url, Access::ReadWrite).await.unwrap();
    let mut world = World::new(13, 400, NOW_US);
    let planted = plant(&mut world, 13, &Mix::each(1));
    let shop = deliver(&store, &world, &planted, 13).await.unwrap();
    for (table, rows) in [
        ("inbox_event", shop.inbox.len()),
        ("ledger_entry", shop.ledger.len()),
        ("object_state", shop.states.len()),
    ] {
        let statement = format!("select count(*) from {table}");
        let count: i64 =
            sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).fetch_one(store.pool()).await.unwrap();
        assert_eq!(usize::try_from(count).unwrap(), rows, "{table}");
    }
    store.close().await;
}

#[test]
fn events_are_of_a_realistic_size() {
    let world = World::new(14, 1000, NOW_US);
    let bytes: usize = world.events.iter().map(|event| event.body.len()).sum();
    let mean = bytes / world.events.len();
    assert!((1000..3000).contains(&mean), "{mean} bytes");
    assert!(world.events.windows(2).any(|pair| pair[0].created_s == pair[1].created_s), "ties");
}
