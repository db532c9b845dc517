//! Same inputs, same bytes: other threads, other memory, another order of rows, another host time zone,
//! and the same again without asking anybody.

use crate::stage::{Ended, Stage};
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use std::time::Duration;

const FILES: [&str; 3] = ["findings.csv", "tie_out.csv", "plan.csv"];

async fn stage() -> Stage {
    Stage::new(41, 400, &Mix::each(2), Faults::default()).await
}

/// What must be the same. The plan's ids carry its run; coverage is compared without its counts of
/// slices and pages, which say how the lists were read and not what was seen.
fn answer(stage: &Stage) -> Vec<String> {
    let mut all: Vec<String> = FILES[..2].iter().map(|name| stage.latest(name)).collect();
    let without_ids = |line: &str| line.split_once(',').unwrap().1.to_owned();
    all.push(stage.latest(FILES[2]).lines().map(without_ids).collect::<Vec<_>>().join("\n"));
    let coverage = stage.latest("coverage.csv");
    let rows = coverage.lines().map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        [&cells[..8], &cells[10..]].concat().join(",")
    });
    all.push(rows.collect::<Vec<_>>().join("\n"));
    // Known findings are the same findings.
    all[0] = all[0].replace(",open,", ",new,");
    all
}

fn assert_same(found: &[String], expected: &[String], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_memory_and_offline_change_nothing() {
    let stage = stage().await;
    assert_eq!(stage.run(&[]).code, Some(1));
    let expected = answer(&stage);
    for more in [
        ["--threads", "1", "--memory", "16MiB"],
        ["--threads", "2", "--memory", "256MiB"],
        ["--threads", "4", "--memory", "16MiB"],
    ] {
        let ended = stage.run(&more);
        assert_eq!(ended.code, Some(1), "{more:?}: {}", ended.stderr);
        assert_same(&answer(&stage), &expected, &format!("{more:?}"));
    }
    let before = stage.emulator.counters.total();
    let ended = stage.run(&["--offline"]);
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, stage.latest("coverage.csv"));
    assert_eq!(stage.emulator.counters.total(), before, "offline asks nobody");
    let offline = answer(&stage);
    // It says that it could not ask again.
    let note = "; it was not asked again by id";
    let findings = |text: &str| text.lines().map(columns_without_note).collect::<Vec<_>>().join("\n");
    assert_eq!(findings(&offline[0].replace(note, "")), findings(&expected[0]));
    assert_same(&offline[1..], &expected[1..], "offline");
}

/// Without `--until` it ends where the run before did, and nothing of that second is called unread; what it says
/// of when a finding was first seen is what the first report said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offline_without_an_end_repeats_the_last_finished_run() {
    let stage = stage().await;
    let since = stage.run_arguments(&[])[1].clone();
    let online = Ended::of(&stage.command(&["--since", &since]).output().unwrap());
    assert_eq!(online.code, Some(1), "{}", online.stderr);
    let window = |ended: &Ended| {
        let line = ended.stdout.lines().last().unwrap().to_owned();
        line.split(' ').find(|word| word.starts_with("window=")).unwrap().to_owned()
    };
    let expected = answer(&stage);
    let later = (stage.world.now_us / 1_000_000 + 3_600).to_string();
    for arguments in [&["--offline"][..], &["--offline", "--since", &since]] {
        let ended = Ended::of(&stage.command(arguments).env("RECON_NOW", &later).output().unwrap());
        assert_eq!(ended.code, Some(1), "{arguments:?}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(window(&ended), window(&online), "{arguments:?}");
        let found = answer(&stage);
        assert_eq!(first_seen(&found[0]), first_seen(&expected[0]), "{arguments:?}");
        assert_eq!(found[1], expected[1], "{arguments:?}: tie_out.csv");
        assert_eq!(found[2], expected[2], "{arguments:?}: plan.csv without its ids");
    }
}

/// Finding ids and when they were first seen.
fn first_seen(findings: &str) -> Vec<(String, String)> {
    let mut reader = csv::Reader::from_reader(findings.as_bytes());
    reader.records().map(|row| row.unwrap()).map(|row| (row[0].to_owned(), row[17].to_owned())).collect()
}

/// A line up to its correction: a note may be quoted, and says whether the provider was asked again. An
/// orphan that nobody was asked for is minor.
fn columns_without_note(line: &str) -> String {
    let cells: Vec<&str> = line.split(',').take(22).collect();
    [&cells[..3], &cells[4..]].concat().join(",")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_order_of_rows_changes_nothing() {
    let plain = stage().await;
    assert_eq!(plain.run(&[]).code, Some(1));
    let turned = stage().await;
    let store = turned.store().await;
    for (table, key) in
        [("inbox_event", "event_id"), ("ledger_entry", "entry_id"), ("object_state", "object_id")]
    {
        for sql in [
            format!("create table turned as select * from {table} order by {key} desc"),
            format!("delete from {table}"),
            format!("insert into {table} select * from turned order by {key} desc"),
            "drop table turned".to_owned(),
        ] {
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(store.pool()).await.unwrap();
        }
    }
    store.close().await;
    assert_eq!(turned.run(&["--threads", "3"]).code, Some(1));
    assert_same(&answer(&turned), &answer(&plain), "rows inserted in another order");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_answers_otherwise_changes_nothing() {
    let plain = stage().await;
    assert_eq!(plain.run(&[]).code, Some(1));
    let faults = Faults {
        seed: 5,
        server_error_per_mille: 100,
        truncated_per_mille: 60,
        dropped_per_mille: 60,
        in_a_row_max: 1,
        page_latency: Duration::from_millis(3),
        ..Faults::default()
    };
    let shaken = Stage::new(41, 400, &Mix::each(2), faults).await;
    let ended = shaken.run(&[]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(shaken.emulator.counters.answers(500) + shaken.emulator.counters.answers(503) > 0);
    assert_same(&answer(&shaken), &answer(&plain), "answers that failed first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c51_the_host_time_zone_changes_nothing() {
    let mut expected: Option<(Vec<String>, String)> = None;
    let stage = stage().await;
    stage.configure("dir = \"out\"", "dir = \"out\"\ntime_zone = \"America/Sao_Paulo\"");
    for zone in ["UTC", "Asia/Tokyo", "America/Los_Angeles"] {
        let output = stage.run_command(&[]).env("TZ", zone).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let announced = String::from_utf8(output.stdout).unwrap().lines().next().unwrap().to_owned();
        assert!(announced.contains("America/Sao_Paulo") && announced.contains("-03:00"), "{announced}");
        let found = (answer(&stage), announced);
        let expected = expected.get_or_insert_with(|| found.clone());
        assert_eq!(found.1, expected.1);
        assert_same(&found.0, &expected.0, zone);
    }
}
