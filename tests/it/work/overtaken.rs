//! Several workers ask for one object while it changes, each under its own clock: whoever's answer comes late, the
//! books end as the provider's last word has it.

use super::shop::{LATER, NOW_US, Shop, scope};
use crate::random::Random;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use recon::apply::{Aliases, Effect, Request};
use recon::provider::{Cancel, Timing};
use recon::record::{EffectKey, EffectKind, EventKey};
use recon::store::{PageRecord, records_by_id};
use recon::work::{Booking, Deed, End, Grounds, Item, Plan, Worker, book, fingerprint};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

pub const MADE_S: i64 = NOW_US / 1_000_000 - 3_600;
pub const AMOUNT: i64 = 1_000;

/// A provider whose objects change, and whose answers may be held after they were made up.
#[derive(Default)]
pub struct Provider {
    objects: Mutex<BTreeMap<String, Value>>,
    /// The next request for this id is answered when it is let go.
    held: Mutex<Option<String>>,
    arrived: Notify,
    let_go: Notify,
    /// What is answered instead of objects, by id.
    pub instead: Mutex<BTreeMap<String, (StatusCode, &'static str)>>,
    /// Longest time under way, µs, and whence it is drawn.
    latency: Mutex<Option<(u64, Random)>>,
}

impl Provider {
    pub async fn start(shop: &Shop) -> Arc<Self> {
        let provider = Arc::new(Self::default());
        let router = Router::new()
            .route("/v1/{stream}", axum::routing::get(list))
            .route("/v1/{stream}/{id}", axum::routing::get(object))
            .with_state(Arc::clone(&provider));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let text = std::fs::read_to_string(shop.config()).unwrap();
        std::fs::write(shop.config(), text.replace(&shop.emulator.base_url, &url)).unwrap();
        provider
    }

    pub fn set(&self, object: &Value) {
        let id = object["id"].as_str().unwrap().to_owned();
        self.objects.lock().unwrap().insert(id, object.clone());
    }

    async fn under_way(&self) {
        let wait = self.latency.lock().unwrap().as_mut().map(|(most, random)| random.below(*most));
        if let Some(wait) = wait {
            tokio::time::sleep(Duration::from_micros(wait)).await;
        }
    }
}

async fn object(
    State(provider): State<Arc<Provider>>,
    Path((_, id)): Path<(String, String)>,
) -> Result<String, (StatusCode, [(&'static str, &'static str); 1], &'static str)> {
    if let Some((status, body)) = provider.instead.lock().unwrap().get(&id) {
        return Err((*status, [("retry-after", "600")], body));
    }
    let found = provider.objects.lock().unwrap().get(&id).map(Value::to_string);
    let is_held = provider.held.lock().unwrap().take_if(|held| *held == id).is_some();
    if is_held {
        provider.arrived.notify_one();
        provider.let_go.notified().await;
    }
    provider.under_way().await;
    found.ok_or((StatusCode::NOT_FOUND, [("x-of", "test")], "{}"))
}

async fn list(State(provider): State<Arc<Provider>>, Path(stream): Path<String>) -> String {
    let is_of = |object: &&Value| format!("{}s", object["object"].as_str().unwrap()) == stream;
    let data: Vec<Value> = provider.objects.lock().unwrap().values().filter(is_of).cloned().collect();
    provider.under_way().await;
    json!({"object": "list", "data": data, "has_more": false, "url": "/"}).to_string()
}

pub fn charge(id: &str) -> Value {
    json!({"id": id, "object": "charge", "amount": AMOUNT, "amount_captured": AMOUNT, "amount_refunded": 0,
        "balance_transaction": format!("txn_{id}"), "captured": true, "created": MADE_S, "currency": "usd",
        "livemode": true, "paid": true, "refunded": false, "status": "succeeded", "payment_intent": null,
        "metadata": {}, "invoice": null})
}

pub fn refund(id: &str, charge: &str, status: &str) -> Value {
    let transaction = (status != "pending").then(|| format!("txn_{id}"));
    json!({"id": id, "object": "refund", "amount": AMOUNT, "balance_transaction": transaction, "charge": charge,
        "created": MADE_S + 10, "currency": "usd", "status": status, "payment_intent": null, "metadata": {}})
}

pub fn payout(id: &str, status: &str) -> Value {
    json!({"id": id, "object": "payout", "amount": AMOUNT, "arrival_date": MADE_S + 86_400, "automatic": true,
        "balance_transaction": format!("txn_{id}"), "created": MADE_S, "currency": "usd", "livemode": true,
        "status": status, "metadata": {}})
}

pub async fn deliver(shop: &Shop, event_id: &str, kind: &str, at_s: i64, object: &Value) {
    let body = json!({"id": event_id, "object": "event", "api_version": "2024-06-20", "created": at_s,
        "livemode": true, "pending_webhooks": 1, "type": kind, "data": {"object": object}, "request": null});
    shop.receive_as(&scope(), event_id, kind, body.to_string().as_bytes()).await;
}

pub async fn net(shop: &Shop, kind: &str, id: &str) -> i64 {
    let sum = "select cast(coalesce(sum(amount_minor), 0) as bigint) from ledger_entry";
    shop.number(&format!("{sum} where kind = '{kind}' and object_id = '{id}'")).await
}

/// One worker asks and is held up; the object changes, another worker handles its event; then the first is
/// answered with what was true when it asked.
async fn overtaken(kinds: [&str; 2], first: &Value, second: &Value) -> Shop {
    let shop = Shop::new(5, 10, "effects = [\"credit\", \"refund\", \"payout\"]\n").await;
    let text = std::fs::read_to_string(shop.config()).unwrap();
    let effects = "effects = [\"credit\", \"refund\", \"payout\"]\n";
    let text = text.replace(effects, "").replace("mode = \"live\"\n", &format!("mode = \"live\"\n{effects}"));
    std::fs::write(shop.config(), text).unwrap();
    let provider = Provider::start(&shop).await;
    provider.set(&charge("ch_1"));
    deliver(&shop, "evt_0", "charge.succeeded", MADE_S, &charge("ch_1")).await;
    shop.drain().await;
    let id = first["id"].as_str().unwrap().to_owned();
    provider.set(first);
    *provider.held.lock().unwrap() = Some(id);
    deliver(&shop, "evt_1", kinds[0], MADE_S + 10, first).await;
    let held_up = async {
        shop.drain().await;
    };
    let meanwhile = async {
        provider.arrived.notified().await;
        provider.set(second);
        deliver(&shop, "evt_2", kinds[1], MADE_S + 12, second).await;
        shop.drain().await;
        provider.let_go.notify_one();
    };
    tokio::join!(held_up, meanwhile);
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(net(&shop, "credit", "ch_1").await, AMOUNT);
    assert_eq!(shop.number("select count(*) from inbox_event where status in ('received', 'dead')").await, 0);
    shop
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_answer_that_comes_late_takes_nothing_back() {
    let kinds = ["refund.created", "refund.updated"];
    let (first, second) = (refund("re_1", "ch_1", "pending"), refund("re_1", "ch_1", "succeeded"));
    let shop = overtaken(kinds, &first, &second).await;
    assert_eq!(net(&shop, "refund", "re_1").await, AMOUNT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_answer_that_comes_late_books_nothing_that_failed() {
    let kinds = ["refund.created", "refund.failed"];
    let (first, second) = (refund("re_1", "ch_1", "succeeded"), refund("re_1", "ch_1", "failed"));
    let shop = overtaken(kinds, &first, &second).await;
    assert_eq!(net(&shop, "refund", "re_1").await, 0);
    let kinds = ["payout.paid", "payout.failed"];
    let shop = overtaken(kinds, &payout("po_1", "paid"), &payout("po_1", "failed")).await;
    assert_eq!(net(&shop, "payout", "po_1").await, 0);
}

/// Three workers with clocks a few seconds apart, one of which is set back all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_under_wrong_clocks_end_at_the_last_word() {
    let seeds = std::env::var("RECON_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    for seed in 0..seeds {
        let shop = Shop::new(seed, 10, "[work]\nretry_delay = \"1s\"\nbatch = 3\n").await;
        let provider = Provider::start(&shop).await;
        *provider.latency.lock().unwrap() = Some((4_000, Random::new(seed ^ 7)));
        let settings = shop.settings();
        let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let worker = |offset_s: i64| {
            let (settings, store, timing, is_over) =
                (&settings, shop.store.clone(), clock(&shop, offset_s), Arc::clone(&is_over));
            async move {
                let worker = Worker::new(settings, store, timing, Cancel::never()).unwrap();
                while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                    worker.run(true, async |_: &[End]| {}).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        };
        let life = async {
            let truth = lives(&shop, &provider, seed).await;
            is_over.store(true, std::sync::atomic::Ordering::SeqCst);
            truth
        };
        let ((), (), (), truth) = tokio::join!(worker(0), worker(5), worker(-5), life);
        for _ in 0..20 {
            shop.pass(LATER);
            shop.drain().await;
        }
        for (id, net_minor) in truth {
            assert_eq!(net(&shop, "refund", &id).await, net_minor, "seed {seed}: {id}");
            assert_eq!(net(&shop, "credit", &id.replace("re_", "ch_")).await, AMOUNT, "seed {seed}: {id}");
        }
        let open = "select count(*) from inbox_event where status in ('received', 'parked', 'dead')";
        assert_eq!(shop.number(open).await, 0, "seed {seed}");
    }
}

/// The shop's clock, so many seconds ahead; where it is behind, it is set back again and again.
fn clock(shop: &Shop, offset_s: i64) -> Timing {
    let read = Arc::clone(&shop.clock_us);
    let start_us = NOW_US + offset_s * 1_000_000;
    let elapsed = move || {
        let at_us = read.fetch_add(1, std::sync::atomic::Ordering::SeqCst) - NOW_US;
        let back_us = if offset_s < 0 { at_us % 3 * 1_000_000 } else { 0 };
        Duration::from_micros(u64::try_from(at_us - back_us).unwrap_or(0))
    };
    Timing::new(start_us, elapsed, |_| Box::pin(tokio::time::sleep(Duration::from_millis(1))))
}

/// Four payments whose refunds change while they are asked for; what is net refunded at the end, by refund.
async fn lives(shop: &Shop, provider: &Provider, seed: u64) -> BTreeMap<String, i64> {
    let mut random = Random::new(seed);
    let mut truth = BTreeMap::new();
    let mut left: Vec<(String, String, Vec<&str>)> = Vec::new();
    for index in 0..4 {
        let charge_id = format!("ch_{index}");
        provider.set(&charge(&charge_id));
        let statuses: &[&[&str]] = &[
            &["failed", "succeeded", "pending"],
            &["failed", "succeeded"],
            &["succeeded", "pending"],
            &["failed", "pending"],
        ];
        let statuses = random.pick(statuses).to_vec();
        let refund_id = format!("re_{index}");
        truth.insert(refund_id.clone(), if statuses[0] == "succeeded" { AMOUNT } else { 0 });
        deliver(shop, &format!("evt_{charge_id}"), "charge.succeeded", MADE_S, &charge(&charge_id)).await;
        left.push((charge_id, refund_id, statuses));
    }
    let mut count = 0;
    while !left.is_empty() {
        let at = usize::try_from(random.below(left.len() as u64)).unwrap();
        let (charge_id, refund_id, statuses) = &mut left[at];
        let status = statuses.pop().unwrap();
        let object = refund(refund_id, charge_id, status);
        provider.set(&object);
        count += 1;
        let kind = if status == "failed" { "refund.failed" } else { "refund.updated" };
        // Told twice, as two events: both are about the same change.
        for copy in 0..2 {
            deliver(shop, &format!("evt_{refund_id}_{status}_{copy}"), kind, MADE_S + 10 + count, &object)
                .await;
        }
        if statuses.is_empty() {
            left.remove(at);
        }
        tokio::time::sleep(Duration::from_micros(random.below(6_000))).await;
    }
    truth
}

/// What was decided waits for the write lock, and another worker is told something else before it is booked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changed_between_deciding_and_booking_is_not_booked() {
    let shop = Shop::new(6, 10, "").await;
    let store = &shop.store;
    deliver(&shop, "evt_1", "charge.succeeded", MADE_S, &charge("ch_1")).await;
    let mut tx = store.begin().await.unwrap();
    let claimed = recon::store::work::claim(&mut tx, &[i64::MAX; 5], shop.now_us(), 1).await.unwrap();
    tx.commit().await.unwrap();
    let ids = BTreeSet::from(["ch_1".to_owned()]);
    let mut asked_at_us = shop.now_us();
    let mut is_told = async |body: &str| {
        asked_at_us += 1;
        let record = PageRecord {
            record_id: "ch_1".to_owned(),
            created_us: MADE_S * 1_000_000,
            asked_at_us,
            body: body.into(),
        };
        store.write_records(&scope(), "charges", &[record]).await.unwrap();
        let held = records_by_id(store, &scope(), &ids, None).await.unwrap();
        (held[0].record_id.clone(), fingerprint(&held[0]))
    };
    let before = is_told("before").await;
    let now = is_told("now").await;
    for (grounds, booked, status) in
        [(before, 0, "received"), (("ch_2".to_owned(), now.1), 0, "received"), (now, AMOUNT, "applied")]
    {
        let plan = Plan::Do(Box::new(deed(&claimed[0].key, grounds, shop.now_us())));
        let item = Item { claimed: claimed[0].clone(), plan };
        let pause = recon::store::work::Pause { min_us: 10_000_000, max_us: 10_000_000 };
        let booking = Booking {
            store,
            now_us: shop.now_us(),
            attempts_max: 5,
            park_max_us: i64::MAX,
            pause,
            has_outbox: false,
        };
        let ends = book(booking, &[&item]).await.unwrap();
        assert_eq!(ends[0].as_ref().map(|end| end.status), Some(status));
        assert_eq!(net(&shop, "credit", "ch_1").await, booked);
        let due = "select count(*) from inbox_event where next_attempt_at_us <= ";
        assert_eq!(shop.number(&format!("{due}{}", shop.now_us())).await, 1, "at once, or never more");
    }
}

fn deed(event: &EventKey, (id, print): (String, [u8; 32]), now_us: i64) -> Deed {
    let effect = Effect {
        kind: EffectKind::Credit,
        object_id: "ch_1".to_owned(),
        aliases: Aliases { ids: Vec::new(), booked_since_us: i64::MIN },
        amount_minor: AMOUNT,
        currency: "usd".to_owned(),
        occurred_at_us: MADE_S * 1_000_000,
        applied_at_us: now_us,
        corrects_entry_id: String::new(),
        run_id: String::new(),
        reason: String::new(),
    };
    let key = EffectKey::of(&event.scope, EffectKind::Credit, "ch_1");
    Deed {
        scope: event.scope.clone(),
        root_id: "ch_1".to_owned(),
        object_id: "ch_1".to_owned(),
        kind: Some(EffectKind::Credit),
        created_us: MADE_S * 1_000_000,
        requests: vec![Request { events: vec![event.clone()], key, effect }],
        undoes: None,
        after_credit_of: None,
        own_status: None,
        word: None,
        asked_us: Some(now_us),
        grounds: Grounds::from([(id, print)]),
        suppressed: String::new(),
    }
}

/// A run under a clock that is ahead writes the page that it read earlier over what the worker was just told. Here a
/// trigger does, which only SQLite has in this form.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_written_over_an_answer_books_nothing() {
    let shop = Shop::new(7, 10, "").await;
    if shop.store.database() != recon::store::Database::Sqlite {
        return;
    }
    let text = std::fs::read_to_string(shop.config()).unwrap();
    let effects = "mode = \"live\"\neffects = [\"credit\", \"payout\"]\n";
    std::fs::write(shop.config(), text.replace("mode = \"live\"\n", effects)).unwrap();
    let provider = Provider::start(&shop).await;
    provider.set(&payout("po_1", "failed"));
    deliver(&shop, "evt_1", "payout.paid", MADE_S, &payout("po_1", "paid")).await;
    let older = payout("po_1", "paid").to_string();
    shop.execute(&format!(
        "create trigger older after insert on provider_record begin
         update provider_record set body = cast('{older}' as blob) where record_id = new.record_id; end"
    ))
    .await;
    shop.drain().await;
    assert_eq!(net(&shop, "payout", "po_1").await, 0);
    assert_eq!(shop.end_of("evt_1").await.0, "received");
    shop.execute("drop trigger older").await;
    shop.pass(LATER);
    shop.drain().await;
    assert_eq!(net(&shop, "payout", "po_1").await, 0);
    assert_eq!(shop.end_of("evt_1").await.0, "superseded", "{:?}", shop.end_of("evt_1").await);
}

/// A person has an event tried again while its last attempt is under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_is_not_undone_by_the_attempt_at_hand() {
    let shop = Shop::new(10, 10, "").await;
    deliver(&shop, "evt_1", "charge.succeeded", MADE_S, &charge("ch_1")).await;
    shop.execute("update inbox_event set attempts = 4").await;
    let mut tx = shop.store.begin().await.unwrap();
    let claimed = recon::store::work::claim(&mut tx, &[i64::MAX; 5], shop.now_us(), 1).await.unwrap();
    tx.commit().await.unwrap();
    shop.execute("update inbox_event set attempts = 0, tried_since_us = 0, next_attempt_at_us = 0").await;
    let pause = recon::store::work::Pause { min_us: 10, max_us: 1_000_000_000_000 };
    for plan in [Plan::Fail("unknown".to_owned()), Plan::Wait("away".to_owned())] {
        let item = Item { claimed: claimed[0].clone(), plan };
        let booking = Booking {
            store: &shop.store,
            now_us: shop.now_us(),
            attempts_max: 5,
            park_max_us: i64::MAX,
            pause,
            has_outbox: false,
        };
        assert_eq!(book(booking, &[&item]).await.unwrap(), [None]);
    }
    let due = "select count(*) from inbox_event where status = 'received' and next_attempt_at_us = 0";
    assert_eq!(shop.number(due).await, 1);
}
