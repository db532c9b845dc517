//! A run's numbers, read by the official client's strict parser: the file and the push.

use crate::ear::Ear;
use crate::stage::{Ended, Stage};
use crate::witness::venv::script;
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use serde_json::Value;
use std::collections::BTreeMap;

fn add(stage: &Stage, more: &str) {
    let text = std::fs::read_to_string(stage.config()).unwrap();
    std::fs::write(stage.config(), format!("{text}{more}\n")).unwrap();
}

/// Values are read in millionths.
const ONE: i64 = 1_000_000;

/// The families of a text of metrics.
fn read(text: &str) -> Value {
    script(&["prometheus.py"], text)
}

/// The one value of a family without labels.
fn value(families: &Value, name: &str) -> i64 {
    let samples = families[name][1].as_array().unwrap_or_else(|| panic!("{name} in {families}"));
    assert_eq!(samples.len(), 1, "{name}: {samples:?}");
    assert_eq!(samples[0][0], serde_json::json!({}), "{name}");
    samples[0][1].as_i64().unwrap()
}

/// What `findings.csv` says, counted by somebody else: (kind, severity) → findings, currency and sign → minor units.
type Counts = (BTreeMap<String, i64>, BTreeMap<String, i64>);

fn counted(stage: &Stage) -> Counts {
    let text = stage.latest("findings.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heads = reader.headers().unwrap().clone();
    let (mut kinds, mut sums) = (BTreeMap::new(), BTreeMap::new());
    for row in reader.records().map(Result::unwrap) {
        let cell = |name: &str| row[heads.iter().position(|head| head == name).unwrap()].to_owned();
        if cell("kind") == "timing_difference" {
            continue;
        }
        *kinds.entry(format!("{} {}", cell("kind"), cell("severity"))).or_insert(0) += ONE;
        if cell("kind") == "currency_mismatch" {
            continue;
        }
        let minor: i64 = cell("difference_minor").parse().unwrap_or(0);
        if minor != 0 {
            let sign = if minor > 0 { "plus" } else { "minus" };
            *sums.entry(format!("{} {sign}", cell("currency"))).or_insert(0) += minor * ONE;
        }
    }
    (kinds, sums)
}

fn series(families: &Value, name: &str, labels: [&str; 2]) -> BTreeMap<String, i64> {
    let samples = families[name][1].as_array().unwrap_or_else(|| panic!("{name} in {families}"));
    let one = |sample: &Value| {
        let label = |name: &str| sample[0][name].as_str().unwrap().to_owned();
        (format!("{} {}", label(labels[0]), label(labels[1])), sample[1].as_i64().unwrap())
    };
    samples.iter().map(one).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_and_the_push_say_what_the_report_says() {
    let (stage, ear) = (Stage::new(51, 160, &Mix::each(1), Faults::default()).await, Ear::open().await);
    let url = format!("{}/metrics/job/recon", ear.root);
    add(&stage, &format!("[metrics]\ntextfile = \"metrics/recon.prom\"\npush_url = \"{url}\""));
    let folder = stage.folder.path().join("metrics");
    // A folder that is not there is said, and changes nothing.
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("[metrics] textfile was not written"), "{}", ended.stderr);
    std::fs::create_dir(&folder).unwrap();
    ear.take("/metrics/job/recon");
    let ended = stage.run(&[]);
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""), "{}", ended.stdout);
    let text = std::fs::read_to_string(folder.join("recon.prom")).unwrap();
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["recon.prom"], "nothing is left beside it");
    let pushed = ear.take("/metrics/job/recon");
    assert_eq!(pushed.len(), 1);
    assert_eq!((&*pushed[0].method, pushed[0].header("content-type")), ("PUT", "text/plain; version=0.0.4"));
    assert_eq!(pushed[0].text(), text);

    let families = read(&text);
    let (kinds, sums) = counted(&stage);
    assert_eq!(series(&families, "recon_findings", ["kind", "severity"]), kinds);
    let told = series(&families, "recon_difference_minor", ["currency", "sign"]);
    for (what, sum) in &sums {
        // What was booked in the wrong currency is in both currencies' sums.
        assert!(told[what].abs() >= sum.abs(), "{what}: {told:?} {sums:?}");
    }
    assert_eq!(value(&families, "recon_open_findings"), kinds.values().sum::<i64>());
    assert_eq!(value(&families, "recon_new_findings"), 0, "the run before has told them");
    assert!(value(&families, "recon_requests") > 5 * ONE);
    assert!(value(&families, "recon_waited_seconds") >= 0);
    assert!(value(&families, "recon_last_run_duration_seconds") > 0);
    let now_s = stage.world.now_us / 1_000_000;
    for name in ["recon_last_run_timestamp_seconds", "recon_last_success_timestamp_seconds"] {
        assert!(value(&families, name) >= now_s * ONE, "{name}: {text}");
    }
    let outcome = |families: &Value, word: &str| -> i64 {
        let samples = families["recon_last_run_outcome"][1].as_array().unwrap();
        samples.iter().find(|sample| sample[0]["outcome"] == word).unwrap()[1].as_i64().unwrap()
    };
    assert_eq!((outcome(&families, "findings"), outcome(&families, "incomplete")), (ONE, 0));

    // A night that fails moves the last run, keeps the last success, and claims nothing else.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    stage.configure(&stage.emulator.base_url, &format!("http://{nobody}"));
    stage.configure("[metrics]\n", "[limits]\nattempts_max = 1\n[metrics]\n");
    let mut command = stage.run_command(&[]);
    command.env("RECON_NOW", (now_s + 86_400).to_string());
    assert_eq!(Ended::of(&command.output().unwrap()).code, Some(2));
    let text = std::fs::read_to_string(folder.join("recon.prom")).unwrap();
    let later = read(&text);
    assert_eq!(outcome(&later, "incomplete"), ONE);
    let last = |families: &Value| value(families, "recon_last_success_timestamp_seconds");
    assert_eq!(last(&later), last(&families));
    assert!(value(&later, "recon_last_run_timestamp_seconds") > last(&later) + 80_000 * ONE);
    assert!(later.get("recon_findings").is_none() && later.get("recon_open_findings").is_none(), "{text}");

    // With the store gone as well, the file knows when it was.
    stage.configure(&stage.url(), "sqlite:/nowhere/at/all.db");
    assert_eq!(stage.run(&[]).code, Some(2));
    let text = std::fs::read_to_string(folder.join("recon.prom")).unwrap();
    assert_eq!(last(&read(&text)), last(&families));
}
