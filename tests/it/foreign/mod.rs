//! Two schemas that nobody here designed: dj-stripe's from `PyPI` and stripe-sync-engine's from npm. Their own migrations
//! make the tables, their own handlers take signed deliveries, some go wrong; `recon init --from` makes the statements, `recon
//! check` accepts the tables, a run finds what went wrong and nothing else, `recon apply` has the events delivered once more, and
//! the next run finds nothing. Who keeps no events has none delivered by `recon apply`.
//!
//! The applications are in `tests/foreign/`. Time is the machine's, as their signature checks know no other.

use crate::examples::history::History;
use crate::postgres::{Cluster, Place};
use crate::receive_sdks::packages;
use crate::stage::Ended;
use crate::witness::venv::{Server, environment};
use recon::config::Secret;
use recon::demo::Payment;
use recon::demo::emulator::{Emulator, Faults};
use recon::demo::world::Event;
use recon::receive::{Kept, Scheme, again};
use recon::record::format_instant;
use recon::store::Database;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const DAY_US: i64 = 86_400_000_000;
const SECRET: &str = "whsec_foreign";
/// The view of dj-stripe, by the endpoint's UUID in `djstripe_app.py`.
const DJSTRIPE_PATH: &str = "/webhook/11111111-2222-3333-4444-555555555555/";

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign")
}

/// Payments whose every change an event tells of. What is left out is told by no event of the endpoint's, or by two of
/// one second: a mirror that only listens cannot have it right.
fn is_told(payment: &Payment) -> bool {
    payment.dispute.is_none()
        && payment.refunds.iter().all(|refund| refund.has_events && refund.failed_s.is_none())
        && payment.charge.as_ref().is_none_or(|charge| {
            !charge.is_delayed
                && charge.captured_s == Some(charge.created_s)
                && charge.captured_minor == payment.amount_minor
        })
}

/// An application, its database, and the provider whose deliveries it takes.
struct App {
    folder: tempfile::TempDir,
    place: Place,
    history: History,
    emulator: Emulator,
    server: Server,
    path: &'static str,
}

impl App {
    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("app.log")).unwrap_or_default()
    }

    /// Delivers an event, freshly signed; the answer's status.
    async fn deliver(&self, event: &Event) -> u16 {
        let url = format!("http://127.0.0.1:{}{}", self.server.port, self.path);
        let headers = BTreeMap::new();
        let kept = Kept { body: event.body.as_bytes(), headers: &headers, url: "", mode: "live" };
        let secrets = [Secret::new(SECRET.to_owned())];
        let delivery = again(&Scheme::Stripe, &secrets, kept, &url, recon::clock::now_us());
        // An error means that it is set already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = client.post(&delivery.url).header("content-type", "application/json");
        for (name, value) in &delivery.headers {
            request = request.header(name, value);
        }
        request.body(delivery.body).send().await.unwrap().status().as_u16()
    }

    async fn deliver_well(&self, events: &[&Event]) {
        for event in events {
            assert_eq!(self.deliver(event).await, 200, "{} {}\n{}", event.kind, event.id, self.said());
        }
    }

    fn recon(&self, hours: i64, arguments: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.current_dir(self.folder.path()).env_clear();
        command.env("RECON_NOW", (self.history.world.now_us / 1_000_000 + hours * 3_600).to_string());
        command.env("BOOKS_URL", self.place.url()).env("STRIPE_API_KEY", &self.emulator.key);
        command.env("HANDLER_SECRET", SECRET);
        Ended::of(&command.args(arguments).output().unwrap())
    }

    /// Lets `init` look at the tables, and the configuration that it wrote ask the emulator.
    fn init(&self, says: &[&str]) {
        let ended = self.recon(0, &["init", "--from-env", "BOOKS_URL"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for expected in says {
            assert!(ended.stdout.contains(expected), "{expected}\n{}", ended.stdout);
        }
        let path = self.folder.path().join("recon.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let more = format!(
            "kind = \"stripe\"\nbase_url = \"{}\"\nrequests_per_second = 5000\naccount_requests_per_second = 20000\n",
            self.emulator.base_url
        );
        std::fs::write(&path, text.replacen("kind = \"stripe\"\n", &more, 1)).unwrap();
    }

    /// Has these kinds corrected by deliveries to the application's own endpoint.
    fn deliver_for(&self, kinds: &[&str]) {
        let path = self.folder.path().join("recon.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let caps = "minor_max = { usd = 100000000, eur = 100000000, brl = 100000000, jpy = 100000000, kwd = 100000000 }";
        let lines = text.lines().map(|line| if line.starts_with("minor_max = ") { caps } else { line });
        let text: Vec<&str> = lines.collect();
        assert!(text.contains(&caps), "{text:#?}");
        let targets: Vec<String> = kinds.iter().map(|kind| format!("{kind} = \"http\"\n")).collect();
        let targets = targets.concat();
        let url = format!("http://127.0.0.1:{}{}", self.server.port, self.path);
        let more = format!(
            "[corrections.target]\n{targets}[corrections.http]\nurl = \"{url}\"\nsecret = {{ env = \"HANDLER_SECRET\" }}\n"
        );
        std::fs::write(&path, format!("{}\n{more}", text.join("\n"))).unwrap();
    }

    /// The configuration without what [`Self::deliver_for`] wrote.
    fn take_target_back(&self) {
        let path = self.folder.path().join("recon.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let kept = text.split("[corrections.target]\nmissing").next().unwrap();
        std::fs::write(&path, kept).unwrap();
    }

    /// What `recon check` says of the application's tables: its exit code, and the lines that are neither well nor a warning.
    fn check(&self) -> (Option<i32>, Vec<String>) {
        let ended = self.recon(25, &["check", "--json"]);
        let lines: Vec<Value> = serde_json::from_str(ended.stdout.lines().next().unwrap_or_default())
            .unwrap_or_else(|_| panic!("{ended:?}"));
        let failing = lines.iter().filter(|line| !matches!(line["status"].as_str(), Some("ok" | "warning")));
        (
            ended.code,
            failing
                .map(|line| ["status", "check", "says"].map(|name| line[name].as_str().unwrap()))
                .map(|[status, check, says]| format!("{status} {check}: {says}"))
                .collect(),
        )
    }

    /// Runs over the world's time, so many hours after it. Exit code, findings (kind and payment), corrections planned, and
    /// the plan's file.
    fn run(&self, hours: i64) -> (Option<i32>, BTreeSet<(String, usize)>, usize, PathBuf) {
        let since = format_instant(self.history.world.from_us, chrono_tz::Tz::UTC);
        let ended = self.recon(hours, &["--json", "--since", &since]);
        let line =
            ended.stdout.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{ended:?}"));
        let summary: Value = serde_json::from_str(line).unwrap();
        let report = self.folder.path().join(summary["report"].as_str().unwrap());
        let mut reader = csv::Reader::from_path(report.join("findings.csv")).unwrap();
        let header = reader.headers().unwrap().clone();
        let place = |name: &str| header.iter().position(|found| found == name).unwrap();
        let rows = reader.records().map(|row| {
            let row = row.unwrap();
            let payment = self.history.payment_of(&row[place("object_id")]);
            (row[place("kind")].to_owned(), payment.unwrap_or_else(|| panic!("{row:?}")))
        });
        let found = rows.collect();
        let path = report.join("plan.csv");
        let plan = std::fs::read_to_string(&path).unwrap().lines().count() - 1;
        (ended.code, found, plan, path)
    }

    /// The events of these payments, oldest first.
    fn events_of(&self, payments: &[usize]) -> Vec<&Event> {
        let all = self.history.delivered().into_iter();
        all.filter(|event| event.payment.is_some_and(|payment| payments.contains(&payment))).collect()
    }

    /// Finds exactly what went wrong; the file of its plan.
    fn find(&self, wrong: &[(&str, usize)]) -> PathBuf {
        let expected: BTreeSet<(String, usize)> =
            wrong.iter().map(|(kind, payment)| ((*kind).to_owned(), *payment)).collect();
        let (code, found, plan, path) = self.run(25);
        assert_eq!((code, &found), (Some(1), &expected), "{}", self.said());
        assert_eq!(plan, wrong.len(), "a correction for each");
        path
    }

    /// The next run finds nothing, and has nothing to correct.
    fn find_nothing(&self) {
        let (code, found, plan, _) = self.run(26);
        assert_eq!((code, found.len(), plan), (Some(0), 0, 0), "{found:?}\n{}", self.said());
    }

    /// How many rows a table has.
    fn count(&self, table: &str) -> String {
        let (cluster, name) = database(&self.place);
        cluster.client(
            "psql",
            name,
            &["--tuples-only", "--command", &format!("select count(*) from {table}")],
        )
    }

    /// Carries a plan out, and says how many of its rows ended as `outcome`.
    fn apply(&self, plan: &Path, outcome: &str) -> usize {
        let ended = self.recon(25, &["apply", plan.to_str().unwrap()]);
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", self.said());
        let mut words = ended.stdout.lines().map(str::split_whitespace);
        let count =
            words.find_map(|mut words| (words.next() == Some(outcome)).then(|| words.next()).flatten());
        count.unwrap_or_else(|| panic!("{outcome}: {ended:?}")).parse().unwrap()
    }
}

/// The line of a key that cannot be seen through a statement with a join: what `[check]` is there to say.
fn not_seen(check: &str, statement: &str) -> String {
    format!("not_checked {check}: {statement}: the database does not tell which table its id comes from")
}

async fn stage() -> (tempfile::TempDir, Place, History, Emulator) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(Database::Postgres, folder.path());
    // The world ends at midnight, so that it tells the same story every day; the deliveries come later that day.
    let now_us = recon::clock::now_us() / DAY_US * DAY_US;
    // All of it is still listed a day later: an event that is received and no longer listed is unknown.
    let listed_from_s = (now_us - 28 * DAY_US) / 1_000_000;
    let is_fitting = |payment: &Payment| is_told(payment) && payment.created_s > listed_from_s;
    let history = History::of_few(now_us, 60, is_fitting);
    let emulator = Emulator::start(&history.world, Faults::default()).await.unwrap();
    (folder, place, history, emulator)
}

fn database(place: &Place) -> (&Cluster, &str) {
    match place {
        Place::Server { cluster, database } => (cluster, database),
        Place::File(path) => panic!("{} is no server's", path.display()),
    }
}

/// A script of dj-stripe's environment.
fn python(arguments: &[&str], given: &Value) -> Command {
    let requirements = scripts().join("requirements.txt");
    let mut command = Command::new(environment("foreign-venv", &requirements));
    command.arg("-u").arg(scripts().join("djstripe_app.py")).args(arguments).arg(given.to_string());
    command.env("NO_PROXY", "*").env("no_proxy", "*").env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Makes dj-stripe's tables: by its own migrations, or from what they made the last time.
fn migrate(cluster: &Cluster, database: &str, given: &Value) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let lock = std::fs::File::create(target.join("foreign-djstripe.lock")).unwrap();
    lock.lock().unwrap();
    let requirements = std::fs::read_to_string(scripts().join("requirements.txt")).unwrap();
    let (made, mark) = (target.join("foreign-djstripe.sql"), target.join("foreign-djstripe.txt"));
    if made.exists() && std::fs::read_to_string(&mark).ok().as_ref() == Some(&requirements) {
        cluster.client("psql", database, &["--quiet", "--no-psqlrc", "--file", made.to_str().unwrap()]);
        return;
    }
    let output = python(&["migrate"], given).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    cluster.client("pg_dump", database, &["--no-owner", "--file", made.to_str().unwrap()]);
    std::fs::write(mark, requirements).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn djstripe_misses_events_and_fails_some_and_has_them_delivered_again() {
    let (folder, place, history, emulator) = stage().await;
    let (cluster, database) = database(&place);
    let broken = folder.path().join("broken");
    let host = cluster.folder().to_str().unwrap();
    let given = json!({
        "database": { "NAME": database, "HOST": host, "USER": "recon" },
        "api": emulator.base_url, "key": emulator.key, "secret": SECRET, "broken": broken,
    });
    migrate(cluster, database, &given);
    let server = Server::of(python(&["serve"], &given), &folder.path().join("app.log"));
    let app = App { folder, place, history, emulator, server, path: DJSTRIPE_PATH };
    let (missed, failed) = (app.history.missed, app.history.failed);
    let fine: Vec<&Event> = app.history.delivered();
    let fine: Vec<&Event> = fine
        .into_iter()
        .filter(|event| !event.payment.is_some_and(|payment| [missed, failed].contains(&payment)))
        .collect();
    app.deliver_well(&fine).await;
    // The API is broken for one charge while its events come: dj-stripe answers 500, and keeps the deliveries.
    std::fs::write(&broken, &app.history.world.payments[failed].charge.as_ref().unwrap().id).unwrap();
    let mut answers = BTreeSet::new();
    for event in app.events_of(&[failed]) {
        answers.insert((event.kind == "charge.succeeded", app.deliver(event).await));
    }
    std::fs::remove_file(&broken).unwrap();
    assert!(answers.contains(&(true, 500)), "{answers:?}");
    app.init(&[
        "inbox: dj-stripe (djstripe_event, djstripe_webhookeventtrigger)",
        "books: dj-stripe (djstripe_charge, djstripe_dispute)",
    ]);
    app.deliver_for(&["missed_event", "unapplied_event"]);
    assert_eq!(app.check(), (Some(0), vec![not_seen("event_key", "inbox.sql")]));
    let wrong = [("missed_event", missed), ("unapplied_event", failed)];
    let plan = app.find(&wrong);
    assert_eq!(app.apply(&plan, "applied"), wrong.len());
    app.find_nothing();
    let before = app.count("djstripe_webhookeventtrigger");
    assert_eq!(app.apply(&plan, "already_applied"), wrong.len());
    assert_eq!(app.count("djstripe_webhookeventtrigger"), before, "nothing is delivered a second time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sync_engine_misses_a_payment_and_a_refund_and_has_them_delivered_again() {
    let (folder, place, history, emulator) = stage().await;
    let (cluster, database) = database(&place);
    let modules = packages("foreign-npm", &scripts().join("package.json"));
    std::fs::copy(scripts().join("sync_engine_app.mjs"), modules.join("sync_engine_app.mjs")).unwrap();
    // Its migrations give a function to that role, as Supabase has it.
    cluster.client("psql", database, &["--quiet", "--command", "do $$ begin create role postgres; exception when duplicate_object or unique_violation then null; end $$"]);
    let given = json!({
        "database": format!("postgres://recon@localhost/{database}?host={}", cluster.folder().display()),
        "api": emulator.base_url, "key": emulator.key, "secret": SECRET,
    });
    let mut command = Command::new("node");
    command.arg("sync_engine_app.mjs").arg(given.to_string()).current_dir(&modules);
    let server = Server::of(command, &folder.path().join("app.log"));
    let app = App { folder, place, history, emulator, server, path: "/" };
    let (missed, stale) = (app.history.missed, app.history.stale);
    let is_lost = |event: &&Event| {
        event.payment == Some(missed)
            || (event.payment == Some(stale)
                && ["charge.refunded", "refund.created", "refund.updated"].contains(&event.kind))
    };
    let fine: Vec<&Event> = app.history.delivered();
    let fine: Vec<&Event> = fine.into_iter().filter(|event| !is_lost(event)).collect();
    app.deliver_well(&fine).await;
    app.init(&[
        "inbox: not recognised\nbooks: stripe-sync-engine (stripe.charges, stripe.refunds, stripe.disputes)",
        "stripe.events is no inbox",
    ]);
    assert_eq!(app.check(), (Some(0), Vec::new()));
    let plan = app.find(&[("missing_effect", missed), ("missing_effect", stale)]);
    // It keeps no events, so nobody can say which ones never came: a plan has none that could be delivered, and says so.
    let ended = app.recon(25, &["apply", plan.to_str().unwrap()]);
    assert_eq!((ended.code, ended.errors().len()), (Some(78), 1), "{ended:?}");
    app.deliver_for(&["missing_effect"]);
    let ended = app.recon(25, &["apply", plan.to_str().unwrap()]);
    assert_eq!(ended.code, Some(78), "{ended:?}");
    assert!(ended.errors()[0].contains("no event that could be delivered again"), "{ended:?}");
    // By hand, then: the events of both payments, freshly signed, to its own endpoint.
    app.take_target_back();
    app.deliver_well(&app.events_of(&[missed, stale])).await;
    app.find_nothing();
}
