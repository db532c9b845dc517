//! An old plan: what it saw at the provider can be gone, or be another amount, when it is carried out.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

use super::books::*;
use crate::stage::{Ended, Stage};
use recon::commands::apply::{AskProvider, Fetched, RowOutcome, apply_auto, carry_out};
use recon::demo::emulator::{Change, Faults};
use recon::demo::faults::{Fault, Mix};
use recon::demo::world::Stream;
use recon::gather::{ExpectedEffect, Standing};
use recon::record::Scope;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// A provider that says this of every effect.
struct Says(Result<Standing, &'static str>);

impl AskProvider for Says {
    async fn status(&self, _: &Scope, _: &str) -> anyhow::Result<Option<Fetched>> {
        Ok(None)
    }

    async fn standings(&self, _: &Scope, expected: &[ExpectedEffect]) -> anyhow::Result<Vec<Standing>> {
        match &self.0 {
            Ok(standing) => Ok(vec![standing.clone(); expected.len()]),
            Err(reason) => Err(anyhow::anyhow!(*reason)),
        }
    }
}

#[tokio::test]
async fn nothing_is_booked_that_the_provider_does_not_confirm() {
    let books = Books::new().await;
    books.listed("evt_of_ch_1", 1).await;
    let rows = books.plan(RUN_ID, &[missed("ch_1", 1_050)]).await;
    let before = books.everything().await;
    let unreachable = Says(Err("no route to host"));
    let error = carry_out(books.work(), &rows, &unreachable).await.unwrap_err();
    assert!(format!("{error:#}").contains("ask stripe whether 1 planned effects still stand"), "{error:#}");
    assert!(apply_auto(books.work(), &books.settings(), &rows, &unreachable).await.is_err());
    assert_eq!(books.everything().await, before);
    for (standing, outcome, text) in [
        (Standing::NotAnswered("locked"), RowOutcome::NotFetched, None),
        (
            Standing::Moved(BTreeMap::new()),
            RowOutcome::StateMoved,
            Some("stripe//live/credit:ch_1: planned 10.50 usd, the provider has nothing of it now"),
        ),
        (
            Standing::Moved(BTreeMap::from([("usd".to_owned(), 2_000)])),
            RowOutcome::StateMoved,
            Some("stripe//live/credit:ch_1: planned 10.50 usd, the provider has 20.00 usd now"),
        ),
    ] {
        let tally = carry_out(books.work(), &rows, &Says(Ok(standing))).await.unwrap();
        assert_eq!(tally.count(outcome), 1, "{outcome}");
        assert_eq!(tally.moved(), text.map(str::to_owned).as_slice());
        assert_eq!(books.number("select count(*) from ledger_entry").await, 0);
        assert_eq!(books.number("select count(*) from inbox_event").await, 0);
    }
    assert_eq!(
        books.text("select min(outcome) || ',' || max(outcome) from correction").await,
        "not_fetched,state_moved"
    );
    assert_eq!(books.carry_out(&rows).await.count(RowOutcome::Applied), 1, "it came back");
}

/// A plan of missed payments and refunds; and what it would book, by effect key.
async fn planned() -> (Stage, BTreeMap<String, String>) {
    let mix = Mix(vec![(Fault::MissedPayment, 3), (Fault::MissedRefund, 2)]);
    let stage = Stage::new(3, 220, &mix, Faults::default()).await;
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let mut keys = BTreeMap::new();
    for record in csv::Reader::from_reader(stage.latest("plan.csv").as_bytes()).records() {
        let record = record.unwrap();
        keys.insert(record[3].rsplit('/').next().unwrap().to_owned(), record[6].to_owned());
    }
    (stage, keys)
}

/// The plan of the first report, applied an hour after it was made.
fn apply_late(stage: &Stage, plan: &Path) -> Ended {
    let mut command = stage.command(&["apply", plan.to_str().unwrap()]);
    command.env("RECON_NOW", (stage.world.now_us / 1_000_000 + 3_600).to_string());
    Ended::of(&command.output().unwrap())
}

fn object_of<'a>(keys: &'a BTreeMap<String, String>, kind: &str) -> Vec<&'a str> {
    keys.keys().filter_map(|key| key.strip_prefix(kind)?.strip_prefix(':')).collect()
}

/// Changes fields of an object at the provider.
fn change(stage: &Stage, stream: Stream, id: &str, fields: &[(&str, Value)]) {
    let mut record = stage.world.records[&stream].iter().find(|record| record.id == id).unwrap().clone();
    let mut body: Value = serde_json::from_str(&record.body).unwrap();
    for (name, value) in fields {
        body[*name] = value.clone();
    }
    record.body = body.to_string().into();
    stage.emulator.change(stream, Change::Remove(id.to_owned()));
    stage.emulator.change(stream, Change::Insert(record));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_plan_books_neither_a_refund_that_failed_since_nor_another_amount() {
    let (stage, keys) = planned().await;
    let plan = stage.reports()[0].join("plan.csv");
    let (refunds, credits) = (object_of(&keys, "refund"), object_of(&keys, "credit"));
    change(&stage, Stream::Refunds, refunds[0], &[("status", json!("failed"))]);
    let captured: i64 = keys[&format!("credit:{}", credits[0])].parse().unwrap();
    let more = [("amount", json!(captured * 2)), ("amount_captured", json!(captured * 2))];
    change(&stage, Stream::Charges, credits[0], &more);
    stage.emulator.change(Stream::Charges, Change::Remove(credits[1].to_owned()));

    let ended = apply_late(&stage, &plan);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    let done = format!(" applied={} ", keys.len() - 3);
    assert!(ended.stdout.contains(&done) && ended.stdout.contains(" state_moved=3 "), "{}", ended.stdout);
    for (key, found) in [
        (format!("refund:{}", refunds[0]), "the provider has nothing of it now"),
        (format!("credit:{}", credits[1]), "the provider has nothing of it now"),
        (format!("credit:{}", credits[0]), "the provider has "),
    ] {
        let line = ended.stdout.lines().find(|line| line.contains(&key)).unwrap();
        assert!(line.contains(": planned ") && line.contains(found), "{line}");
        assert_eq!(
            stage
                .ask(&format!("select cast(count(*) as text) from ledger_entry where effect_key = '{key}'"))
                .await,
            "0"
        );
        assert_eq!(
            stage.ask(&format!("select outcome from correction where effect_key = '{key}'")).await,
            "state_moved"
        );
    }
    let before = stage.business_rows().await;
    let again = apply_late(&stage, &plan);
    assert!(
        again.stdout.contains(" applied=0 ") && again.stdout.contains(" state_moved=3 "),
        "{}",
        again.stdout
    );
    assert_eq!(stage.business_rows().await, before);

    // The next run sees it as it is.
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let findings = stage.latest("findings.csv");
    let of = |id: &str| -> Vec<csv::StringRecord> {
        let mut rows = csv::Reader::from_reader(findings.as_bytes());
        rows.records().map(Result::unwrap).filter(|row| &row[7] == id).collect()
    };
    assert!(
        of(refunds[0]).iter().all(|row| row[13].is_empty()),
        "no money of a refund that failed: {findings}"
    );
    let found = of(credits[0]);
    assert_eq!((&found[0][1], &found[0][11]), ("missed_event", &*(captured * 2).to_string()), "{findings}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_plan_asks_and_a_new_one_need_not() {
    let (stage, keys) = planned().await;
    let plan = stage.reports()[0].join("plan.csv");
    let asked = || {
        stage.emulator.counters.requests("charges/{id}") + stage.emulator.counters.requests("refunds/{id}")
    };
    let before = asked();
    let ended = Ended::of(&stage.command(&["apply", plan.to_str().unwrap()]).output().unwrap());
    assert_eq!((ended.code, asked()), (Some(0), before), "{}{}", ended.stdout, ended.stderr);
    let (stage, _) = planned().await;
    let plan = stage.reports()[0].join("plan.csv");
    let asked = || {
        stage.emulator.counters.requests("charges/{id}") + stage.emulator.counters.requests("refunds/{id}")
    };
    let before = asked();
    let ended = apply_late(&stage, &plan);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(asked() - before, u64::try_from(keys.len()).unwrap(), "each object once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_plan_is_not_carried_out_while_the_provider_cannot_be_asked() {
    let (stage, _) = planned().await;
    let plan = stage.reports()[0].join("plan.csv");
    // Nothing listens on the port of an emulator that ended.
    stage.configure(&stage.emulator.base_url, "http://127.0.0.1:9");
    stage.configure("[corrections]", "[limits]\nattempts_max = 1\n[corrections]");
    let before = stage.business_rows().await;
    let ended = apply_late(&stage, &plan);
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    let error = ended.errors().join("\n");
    assert!(error.contains("planned effects still stand") && error.contains("unreachable"), "{error}");
    assert!(ended.stderr.contains("hint: check `base_url`"), "{}", ended.stderr);
    assert_eq!(stage.business_rows().await, before);
    assert_eq!(stage.ask("select cast(count(*) as text) from correction").await, "0");
    stage.configure("http://127.0.0.1:9", &stage.emulator.base_url);
    assert_eq!(apply_late(&stage, &plan).code, Some(0), "the same command goes on from here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_and_apply_are_one_document_and_the_last_line() {
    let mix = Mix(vec![(Fault::MissedPayment, 3)]);
    let stage = Stage::new(3, 220, &mix, Faults::default()).await;
    stage.configure("[corrections]", "[corrections]\nauto = [\"missed_event\"]");
    // Offline there is nobody to ask, so no money is booked.
    assert_eq!(stage.run(&[]).code, Some(1));
    for (more, applied, not_fetched) in [(&["--offline"][..], 0, 3), (&[], 3, 0)] {
        let ended = stage.run(&[&["--json", "--apply"], more].concat());
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let lines: Vec<&str> = ended.stdout.lines().collect();
        assert_eq!(lines.len(), 2, "{}", ended.stdout);
        assert!(lines[1].starts_with("outcome=findings findings=3 "), "{}", lines[1]);
        let summary: Value = serde_json::from_str(lines[0]).unwrap();
        let rows = &summary["applied"]["rows"];
        assert_eq!(
            (&rows["applied"], &rows["not_fetched"]),
            (&json!(applied), &json!(not_fetched)),
            "{}",
            lines[0]
        );
        assert_eq!(summary["applied"]["moved"], json!([]));
    }
    let ended = stage.run(&["--json"]);
    let summary: Value = serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((ended.code, &summary["applied"]), (Some(0), &Value::Null), "{}", ended.stdout);
}
