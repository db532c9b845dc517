//! The witness: a provider and a client that this project did not write.
//!
//! `localstripe` (`PyPI`, GPL 3, a process of its own) plays the provider, the official `stripe` SDK the shop's
//! till and the signature check of its endpoint, which answers 500 to every third delivery. The endpoint is
//! Python and keeps its own journal; the expected findings are made from that journal and from what the till
//! says it did, never from the program under test.
//!
//! localstripe is not Stripe. The proxy between it and the program translates what it lacks:
//!
//! | Stripe | localstripe | here |
//! |---|---|---|
//! | every list newest first | events, charges, intents, payouts oldest first | sorted, ties as inserted |
//! | `created` bounds on every list | events only, half of them on charges, 400 or 500 elsewhere | filtered |
//! | an unknown cursor is `resource_missing` | starts again at the first row | refused |
//! | at most 100 rows a page | any number | refused above 100 |
//! | disputes, checkout sessions | 404 | empty lists |
//! | lists of one payment or charge (`payment_intent=`, `charge=`) | 400 on some | filtered by that field |
//! | `expand[]=data.balance_transaction` | 400 for objects whose movement is made up (payouts) | shown whole where there is one |
//! | `expand[]=data.payments` of invoices | 400 | left out; its invoices name the intent as old versions do |
//! | `pending_webhooks` of events | missing | 1: unacknowledged, so that only age settles an event |
//!
//! It never retries a delivery and says nothing of a refund, so that dropped events are missed for certain
//! and every refund is one without an event. The program runs once an hour later, when nothing is missed
//! yet because Stripe would still retry, and five days later, when everything is.

mod emulator;
mod proxy;
pub mod venv;

use proxy::Proxy;
use recon::store::{Access, Store};
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::Row;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use venv::{Server, script};

const KEY: &str = "sk_test_witness";
const SECRET: &str = "whsec_witness";
const HOUR_S: u64 = 3_600;

/// Every type that localstripe sends for what the till does.
const TYPES: [&str; 11] = [
    "customer.created",
    "customer.subscription.created",
    "customer.updated",
    "invoice.created",
    "invoice.payment_failed",
    "invoice.payment_succeeded",
    "payment_intent.payment_failed",
    "payment_intent.succeeded",
    "payout.created",
    "plan.created",
    "product.created",
];

/// A line of the endpoint's journal.
#[derive(Clone, Debug, Deserialize)]
struct Delivery {
    event: String,
    kept: bool,
    charge: String,
    amount: i64,
    currency: String,
}

/// A refund that the till made.
#[derive(Clone, Debug, Deserialize)]
struct Refund {
    id: String,
    amount: i64,
    currency: String,
}

/// What the till did.
#[derive(Clone, Debug, Deserialize)]
struct Till {
    payments: Vec<Value>,
    refunds: Vec<Refund>,
    balance: BTreeMap<String, i64>,
}

/// A line of `findings.csv`.
#[derive(Clone, Debug, Deserialize)]
struct Finding {
    kind: String,
    cause: String,
    object_id: String,
    event_ids: String,
    currency: String,
    difference_minor: Option<i64>,
    correction: String,
}

/// Money of an object, as it moves the balance: (object, currency, minor units).
type Money = BTreeSet<(String, String, i64)>;

/// What must be found, from the endpoint's and the till's own word.
struct Expected {
    /// Dropped events, apart from those whose charge another delivery booked.
    events: BTreeSet<String>,
    /// Dropped events whose charge another delivery booked: counted, no finding.
    without_consequence: u64,
    /// Charges that no delivery booked.
    charges: Money,
    refunds: Money,
}

impl Expected {
    fn of(journal: &[Delivery], till: &Till) -> Self {
        let booked: BTreeSet<&String> = journal
            .iter()
            .filter(|line| line.kept && !line.charge.is_empty())
            .map(|line| &line.charge)
            .collect();
        let dropped = || journal.iter().filter(|line| !line.kept);
        let is_excused = |line: &&Delivery| booked.contains(&line.charge);
        let unbooked = dropped().filter(|line| !line.charge.is_empty() && !is_excused(line));
        Self {
            events: dropped().filter(|line| !is_excused(line)).map(|line| line.event.clone()).collect(),
            without_consequence: dropped().filter(is_excused).count().try_into().unwrap(),
            charges: unbooked.map(|line| (line.charge.clone(), line.currency.clone(), line.amount)).collect(),
            refunds: till
                .refunds
                .iter()
                .map(|made| (made.id.clone(), made.currency.clone(), -made.amount))
                .collect(),
        }
    }
}

/// A shop with its provider, after a busy second.
struct Shop {
    folder: tempfile::TempDir,
    provider: Server,
    proxy: Proxy,
    till: Till,
    journal: Vec<Delivery>,
    since_s: u64,
    _endpoint: Server,
}

impl Shop {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let since_s = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs() - HOUR_S;
        store(folder.path()).await.close().await;
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (books, journal) = (path("recon.db"), path("journal"));
        let endpoint =
            Server::start(&["endpoint.py", &books, &journal, SECRET], &folder.path().join("endpoint.log"));
        let arguments = ["-m", "localstripe", "--from-scratch", "--port", "0"];
        let provider = Server::start(&arguments, &folder.path().join("localstripe.log"));
        let base_url = base_url(&provider);
        let proxy = Proxy::start(&base_url).await;
        let hook = json!({ "url": format!("http://127.0.0.1:{}/", endpoint.port), "secret": SECRET });
        let register = reqwest::Client::builder().no_proxy().build().unwrap();
        let register = register.post(format!("{base_url}/_config/webhooks/shop")).body(hook.to_string());
        assert!(register.send().await.unwrap().status().is_success());
        let till = serde_json::from_value(script(&["driver.py", &base_url], "")).unwrap();
        let journal = delivered(&base_url, Path::new(&journal));
        let shop = Self { folder, provider, proxy, till, journal, since_s, _endpoint: endpoint };
        shop.configure();
        shop
    }

    fn configure(&self) {
        let configuration = format!(
            "[store]\nurl = \"sqlite:recon.db\"\n[report]\ndir = \"out\"\n\
             [[provider]]\nname = \"stripe\"\nmode = \"test\"\nbase_url = \"{}\"\n\
             api_key = {{ file = \"stripe.key\" }}\nrequests_per_second = 1000\n\
             account_requests_per_second = 5000\nevent_types = {TYPES:?}\n\
             [corrections]\nminor_max = {{ brl = 1000000, eur = 1000000, jpy = 1000000, usd = 1000000 }}\n",
            self.proxy.base_url
        );
        std::fs::write(self.folder.path().join("recon.toml"), configuration).unwrap();
        std::fs::write(self.folder.path().join("stripe.key"), KEY).unwrap();
    }

    /// Runs the program this many hours after the busy second.
    fn recon(&self, hours: u64, arguments: &[&str]) -> (i32, String) {
        let now_s = self.since_s + HOUR_S + hours * HOUR_S;
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.current_dir(self.folder.path()).env_clear().env("RECON_NOW", now_s.to_string());
        let output = command.args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (output.status.code().unwrap_or_else(|| panic!("killed: {said}")), said)
    }

    /// Reconciles; exit code, the summary and the report's folder.
    fn reconcile(&self, hours: u64) -> (i32, Value, PathBuf) {
        let since = chrono::DateTime::from_timestamp(self.since_s.try_into().unwrap(), 0).unwrap();
        let (exit, said) = self.recon(hours, &["--json", "--since", &since.to_rfc3339()]);
        let line = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{said}"));
        let summary: Value = serde_json::from_str(line).unwrap();
        let dir = self.folder.path().join(summary["report"].as_str().unwrap());
        (exit, summary, dir)
    }

    async fn rows(&self) -> BTreeMap<&'static str, i64> {
        let store = store(self.folder.path()).await;
        let mut counts = BTreeMap::new();
        for table in ["ledger_entry", "object_state", "inbox_event", "applied_event", "outbox_message"] {
            let sql = format!("select count(*) as rows from {table}");
            let row = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_one(store.pool()).await.unwrap();
            counts.insert(table, row.get("rows"));
        }
        store.close().await;
        counts
    }

    /// What the books say the balance is, per currency.
    async fn balance(&self) -> BTreeMap<String, i64> {
        let store = store(self.folder.path()).await;
        let sql = "select currency, sum(case kind when 'refund' then -amount_minor else amount_minor end) as minor \
                   from ledger_entry group by currency";
        let rows = sqlx::query(sql).fetch_all(store.pool()).await.unwrap();
        store.close().await;
        rows.iter().map(|row| (row.get("currency"), row.get("minor"))).collect()
    }
}

async fn store(folder: &Path) -> Store {
    let url = format!("sqlite:{}", folder.join("recon.db").display());
    Store::open(&url, Access::ReadWrite).await.unwrap()
}

fn base_url(server: &Server) -> String {
    format!("http://127.0.0.1:{}", server.port)
}

/// The ids of collections, as the official SDK pages them.
fn listed(base_url: &str, key: &str, asked: &Value) -> Vec<Value> {
    match script(&["listing.py", base_url, key], &asked.to_string()) {
        Value::Array(answers) => answers,
        other => panic!("{other}"),
    }
}

fn ids(answer: &Value) -> Vec<String> {
    let ids = answer.as_array().unwrap_or_else(|| panic!("{answer}"));
    ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// The journal, once it has every event that the provider has.
fn delivered(base_url: &str, path: &Path) -> Vec<Delivery> {
    let answers = listed(base_url, KEY, &json!([["events", { "limit": 100 }]]));
    let events: BTreeSet<String> = ids(&answers[0]).into_iter().collect();
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let journal: Vec<Delivery> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let seen: BTreeSet<String> = journal.iter().map(|line| line.event.clone()).collect();
        if seen == events {
            assert_eq!(journal.len(), events.len(), "localstripe delivers once");
            return journal;
        }
        assert!(Instant::now() < deadline, "{} of {} deliveries came", seen.len(), events.len());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn findings(dir: &Path) -> Vec<Finding> {
    let mut reader = csv::Reader::from_path(dir.join("findings.csv")).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

fn events_of<'a>(findings: impl Iterator<Item = &'a Finding>) -> BTreeSet<String> {
    findings.flat_map(|finding| finding.event_ids.split('|')).map(str::to_owned).collect()
}

fn money_of<'a>(findings: impl Iterator<Item = &'a Finding>) -> Money {
    findings
        .map(|found| (found.object_id.clone(), found.currency.clone(), found.difference_minor.unwrap()))
        .collect()
}

fn is(kind: &'static str) -> impl Fn(&&Finding) -> bool {
    move |finding| finding.kind == kind
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recon_finds_what_localstripe_sent_in_vain_and_what_it_never_sent() {
    let shop = Shop::open().await;
    let expected = Expected::of(&shop.journal, &shop.till);
    assert!(!expected.charges.is_empty() && !expected.refunds.is_empty() && shop.till.payments.len() >= 20);

    println!(
        "{} events dropped of {}, {} of them without consequence; {} refunds",
        shop.journal.iter().filter(|line| !line.kept).count(),
        shop.journal.len(),
        expected.without_consequence,
        expected.refunds.len()
    );

    // An hour later Stripe would still retry: no event is missed yet, but no event will bring a refund.
    let (exit, summary, dir) = shop.reconcile(1);
    let found = findings(&dir);
    assert_eq!(found.iter().filter(|finding| finding.kind != "missing_effect").count(), 0, "{found:#?}");
    assert_eq!((exit, money_of(found.iter())), (1, expected.refunds.clone()));
    assert_eq!(summary["tied_out"], json!(true));

    // Five days later exactly the dropped events are missed.
    let (exit, summary, dir) = shop.reconcile(120);
    let found = findings(&dir);
    let missed = || found.iter().filter(is("missed_event"));
    assert_eq!((exit, events_of(missed())), (1, expected.events.clone()));
    assert_eq!(money_of(missed().filter(|finding| finding.correction == "replay_event")), expected.charges);
    assert_eq!(money_of(found.iter().filter(is("missing_effect"))), expected.refunds);
    let others =
        found.iter().filter(|finding| !is("missed_event")(finding) && !is("missing_effect")(finding));
    assert_eq!(others.count(), 0, "{found:#?}");
    let unknown = |finding: &&Finding| finding.cause == "consequence_unknown";
    assert!(missed().all(|finding| unknown(&finding) || finding.correction == "replay_event"), "{found:#?}");
    assert_eq!(summary["counted"]["missed_without_consequence"], json!(expected.without_consequence));
    assert_eq!(summary["tied_out"], json!(true));

    // Applying puts the books right, once.
    let plan = dir.join("plan.csv");
    let plan = plan.to_str().unwrap();
    let (exit, said) = shop.recon(120, &["apply", plan]);
    assert_eq!(exit, 0, "{said}");
    assert_eq!(shop.balance().await, shop.till.balance, "the provider's own balance transactions");
    let before = shop.rows().await;
    let (exit, said) = shop.recon(120, &["apply", plan]);
    assert_eq!((exit, shop.rows().await), (0, before), "{said}");

    // What is left moves no money and needs a person.
    let (exit, summary, dir) = shop.reconcile(121);
    let left = findings(&dir);
    assert!(left.iter().all(|finding| unknown(&finding)), "{left:#?}");
    assert_eq!((exit, events_of(left.iter())), (1, events_of(missed().filter(unknown))));
    assert_eq!(std::fs::read_to_string(dir.join("plan.csv")).unwrap().lines().count(), 1);
    assert_eq!(summary["corrections"], json!(0));
    assert_eq!(shop.proxy.writes(), 0, "a write call to the provider");
    straight_at_localstripe_nothing_is_claimed(&shop);
    the_proxy_adds_and_loses_nothing(&shop);
}

/// What localstripe refuses is a hole in what was seen, and a run with holes has no answer: no finding
/// and no plan come of it.
fn straight_at_localstripe_nothing_is_claimed(shop: &Shop) {
    let configuration = std::fs::read_to_string(shop.folder.path().join("recon.toml")).unwrap();
    let straight = configuration.replace(&shop.proxy.base_url, &base_url(&shop.provider));
    let straight = straight.replace("recon.db", "straight.db").replace("\"out\"", "\"straight\"");
    std::fs::write(shop.folder.path().join("straight.toml"), straight + "[limits]\nattempts_max = 1\n")
        .unwrap();
    let (exit, said) = shop.recon(120, &["--config", "straight.toml"]);
    assert_eq!(exit, 2, "{said}");
    assert!(said.contains("outcome=incomplete findings=0"), "{said}");
}

/// The official client sees the same records through the proxy and without it.
fn the_proxy_adds_and_loses_nothing(shop: &Shop) {
    let collections =
        ["events", "charges", "refunds", "balance_transactions", "payouts", "invoices", "payment_intents"];
    let asked = |limit: u32| Value::from_iter(collections.map(|name| json!([name, { "limit": limit }])));
    let direct = listed(&base_url(&shop.provider), KEY, &asked(100));
    let translated = listed(&shop.proxy.base_url, KEY, &asked(7));
    for (name, (direct, translated)) in collections.iter().zip(direct.iter().zip(&translated)) {
        let (mut direct, mut translated) = (ids(direct), ids(translated));
        direct.sort();
        translated.sort();
        assert_eq!(direct, translated, "{name}");
    }
}
