//! An empty store with its configuration, the emulator as the provider, and deliveries by hand. Time stands still
//! but for what is waited.

use crate::postgres::Place;
use crate::stage::run_request;
use recon::commands::apply::{ApplyArgs, apply_to};
use recon::commands::{Outcome, run};
use recon::config::{self, Settings};
use recon::demo::PROVIDER;
use recon::demo::emulator::{Emulator, Faults};
use recon::demo::world::{Event, World};
use recon::provider::{Cancel, Timing};
use recon::record::{EffectKind, EventKey, Scope, sha256_hex};
use recon::store::arrivals::{Arrival, file_arrivals};
use recon::store::{Access, Store};
use recon::work::{Tally, Worker};
use sqlx::Row;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// 2026-06-15T12:34:56Z.
pub const NOW_US: i64 = 1_781_526_896_000_000;
/// Nothing is fetched that the event itself proves.
pub const OWN: &str = "[work]\nfetch = []\nbatch = 7\n";
/// Longer than any wait of the worker but the last.
pub const LATER: Duration = Duration::from_hours(2);

pub struct Shop {
    pub folder: tempfile::TempDir,
    pub world: World,
    pub emulator: Emulator,
    pub clock_us: Arc<AtomicI64>,
    pub store: Store,
    place: Place,
}

impl Shop {
    pub async fn new(seed: u64, events: usize, configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(Place::asked_for(), folder.path());
        let world = World::new(seed, events, NOW_US);
        let emulator = Emulator::start(&world, Faults::default()).await.unwrap();
        std::fs::write(folder.path().join("stripe.key"), &emulator.key).unwrap();
        let text = format!(
            "[store]\nurl = \"{}\"\n[report]\ndir = \"out\"\n[[provider]]\nname = \"{PROVIDER}\"\nkind = \"stripe\"\n\
             base_url = \"{}\"\napi_key = {{ file = \"stripe.key\" }}\nmode = \"live\"\nrequests_per_second = 5000\n\
             account_requests_per_second = 20000\n\
             [corrections]\ncount_max = 100000\n\
             minor_max = {{ usd = 1000000000, eur = 1000000000, brl = 1000000000, jpy = 1000000000, kwd = 1000000000 }}\n\
             {configuration}",
            place.url(),
            emulator.base_url,
        );
        std::fs::write(folder.path().join("recon.toml"), text).unwrap();
        let store = Store::open(&place.url(), Access::ReadWrite).await.unwrap();
        Self { folder, world, emulator, clock_us: Arc::new(AtomicI64::new(NOW_US)), store, place }
    }

    /// The same store on PostgreSQL, where no statement may take longer than 0.2 s.
    pub async fn hurried(&self) -> Store {
        let url = self.place.url();
        let mark = if url.contains('?') { '&' } else { '?' };
        Store::open(&format!("{url}{mark}options[statement_timeout]=200"), Access::ReadWrite).await.unwrap()
    }

    pub fn settings(&self) -> Settings {
        config::load(Some(&self.config())).unwrap()
    }

    pub fn config(&self) -> PathBuf {
        self.folder.path().join("recon.toml")
    }

    pub fn url(&self) -> String {
        self.place.url()
    }

    /// The shop's clock: it moves by a microsecond whenever it is read, and by what is slept.
    pub fn timing(&self) -> Timing {
        let (read, slept) = (Arc::clone(&self.clock_us), Arc::clone(&self.clock_us));
        let elapsed = move || {
            let at_us = read.fetch_add(1, Ordering::SeqCst);
            Duration::from_micros(u64::try_from(at_us - NOW_US).unwrap())
        };
        Timing::new(NOW_US, elapsed, move |wait| {
            slept.fetch_add(i64::try_from(wait.as_micros()).unwrap(), Ordering::SeqCst);
            Box::pin(std::future::ready(()))
        })
    }

    pub fn pass(&self, time: Duration) {
        self.clock_us.fetch_add(i64::try_from(time.as_micros()).unwrap(), Ordering::SeqCst);
    }

    pub fn now_us(&self) -> i64 {
        self.clock_us.load(Ordering::SeqCst)
    }

    /// The binary in a bare environment, at the shop's time and so much later.
    pub fn command(&self, arguments: &[&str], later: Duration) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        let now_s = self.now_us() / 1_000_000 + i64::try_from(later.as_secs()).unwrap();
        command.current_dir(self.folder.path()).env_clear().env("RECON_NOW", now_s.to_string());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Takes deliveries, each in a transaction of its own, as they would come.
    pub async fn receive<'e>(&self, events: impl IntoIterator<Item = &'e Event>) {
        for event in events {
            self.pass(Duration::from_micros(1));
            self.receive_as(&scope(), &event.id, event.kind, event.body.as_bytes()).await;
        }
    }

    pub async fn receive_as(&self, scope: &Scope, event_id: &str, event_type: &str, body: &[u8]) {
        let arrival = arrival(scope, event_id, event_type, body, self.now_us());
        let mut tx = self.store.begin().await.unwrap();
        file_arrivals(&mut tx, &[arrival]).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Works until nothing is due.
    pub async fn drain(&self) -> Tally {
        self.drain_with(&self.settings()).await
    }

    pub async fn drain_with(&self, settings: &Settings) -> Tally {
        let worker = Worker::new(settings, self.store.clone(), self.timing(), Cancel::never()).unwrap();
        worker.run(true, async |_: &[recon::work::End]| {}).await.unwrap()
    }

    /// Events of a payment in causal order.
    pub fn events_of(&self, payment: usize) -> Vec<&Event> {
        self.world.events.iter().rev().filter(|event| event.payment == Some(payment)).collect()
    }

    /// The first payment with an event of each of these types.
    pub fn payment_with(&self, types: &[&str]) -> usize {
        let has = |payment: &usize| {
            let events = self.events_of(*payment);
            types.iter().all(|wanted| events.iter().any(|event| event.kind == *wanted))
        };
        (0..self.world.payments.len()).find(has).expect("a payment with such events")
    }

    pub fn event(&self, payment: usize, kind: &str) -> &Event {
        self.events_of(payment).into_iter().find(|event| event.kind == kind).expect("an event of that type")
    }

    /// What the ledger says, net, of each effect.
    pub async fn ledger(&self) -> BTreeMap<(String, String, String), i64> {
        let sql =
            "select kind, object_id, currency, cast(sum(amount_minor) as bigint) as total from ledger_entry
                   group by kind, object_id, currency";
        let rows = sqlx::query(sql).fetch_all(self.store.pool()).await.unwrap();
        let rows = rows.iter().map(|row| {
            ((row.get("kind"), row.get("object_id"), row.get("currency")), row.get::<i64, _>("total"))
        });
        rows.filter(|(_, total)| *total != 0).collect()
    }

    /// What the provider says of them, of the kinds that are booked by default.
    pub fn truth(&self) -> BTreeMap<(String, String, String), i64> {
        let mut truth = BTreeMap::new();
        for effect in &self.world.truth {
            if !matches!(effect.kind, EffectKind::Fee | EffectKind::Payout) {
                let key = (effect.kind.to_string(), effect.object_id.clone(), effect.currency.to_owned());
                *truth.entry(key).or_insert(0) += effect.amount_minor;
            }
        }
        truth
    }

    /// Statuses that the store holds, by payment.
    pub async fn states(&self) -> BTreeMap<String, String> {
        let rows =
            sqlx::query("select object_id, status from object_state").fetch_all(self.store.pool()).await;
        rows.unwrap().iter().map(|row| (row.get("object_id"), row.get("status"))).collect()
    }

    /// Events by status.
    pub async fn ended(&self) -> BTreeMap<String, i64> {
        let sql = "select status, count(*) as events from inbox_event group by status";
        let rows = sqlx::query(sql).fetch_all(self.store.pool()).await.unwrap();
        rows.iter().map(|row| (row.get("status"), row.get("events"))).collect()
    }

    /// (status, why) of one event.
    pub async fn end_of(&self, event_id: &str) -> (String, String) {
        let sql = "select status, last_error from inbox_event where event_id = $1";
        let row = sqlx::query(sql).bind(event_id).fetch_one(self.store.pool()).await.unwrap();
        (row.get("status"), row.get("last_error"))
    }

    pub async fn number(&self, sql: &str) -> i64 {
        let row = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).fetch_one(self.store.pool()).await;
        row.unwrap().get(0)
    }

    pub async fn execute(&self, sql: &str) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(self.store.pool()).await.unwrap();
    }

    /// A run over the world's window; its plan.
    pub async fn reconcile(&self) -> (Outcome, String, PathBuf) {
        let settings = self.settings();
        let request = run_request(&self.world);
        let mut said = Vec::new();
        let finished = run::reconcile(&settings, &request, &mut said).await.unwrap();
        let dir = finished.dir.unwrap();
        let findings = std::fs::read_to_string(dir.join("findings.csv")).unwrap();
        (finished.outcome, findings, dir.join("plan.csv"))
    }

    pub async fn apply(&self, plan: PathBuf) -> String {
        let mut said = Vec::new();
        apply_to(&self.settings(), &ApplyArgs { plan }, self.world.now_us, &mut said).await.unwrap();
        String::from_utf8(said).unwrap()
    }
}

pub fn scope() -> Scope {
    Scope::new(PROVIDER, "", "live")
}

pub fn arrival(scope: &Scope, event_id: &str, event_type: &str, body: &[u8], at_us: i64) -> Arrival {
    Arrival {
        key: EventKey { scope: scope.clone(), event_id: event_id.to_owned() },
        event_type: event_type.to_owned(),
        body: body.to_vec(),
        body_sha256: sha256_hex(body),
        headers: String::new(),
        url: String::new(),
        secret_slot: 1,
        received_at_us: at_us,
    }
}
