//! Logs as JSON: every line on stderr is one object with the run's id, errors that end the program included.

use crate::stage::{Ended, Stage};
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use serde_json::Value;

/// The lines of stderr, each parsed, and the one run id that all of them have.
fn lines(ended: &Ended) -> (Vec<Value>, String) {
    let lines: Vec<Value> = ended
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    assert!(!lines.is_empty());
    let ids: std::collections::BTreeSet<&str> =
        lines.iter().map(|line| line["run_id"].as_str().unwrap_or_else(|| panic!("{line}"))).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    for line in &lines {
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
        assert!(!line["fields"]["message"].as_str().unwrap().is_empty(), "{line}");
    }
    let id = (*ids.first().unwrap()).to_owned();
    (lines, id)
}

fn run(stage: &Stage, level: &str, arguments: &[&str]) -> Ended {
    let mut command = stage.command(arguments);
    command.env("RECON_LOG", level).env("RECON_LOG_FORMAT", "json");
    Ended::of(&command.output().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_line_of_a_run_has_its_id() {
    let stage = Stage::new(61, 120, &Mix::each(1), Faults::default()).await;
    let arguments = stage.run_arguments(&["--json"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = run(&stage, "trace", &arguments);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let (told, id) = lines(&ended);
    assert!(told.len() > 20, "{}", told.len());
    assert_eq!(stage.ask("select run_id from run").await, id);
    assert_eq!(stage.reports()[0].file_name().unwrap().to_str(), Some(&*id));
    assert!(!ended.stderr.contains(&stage.emulator.key));
    // At the usual level there is at most the window, which `--json` keeps off stdout.
    let ended = run(&stage, "warn", &arguments);
    let (told, next) = lines(&ended);
    assert!(told.len() <= 2 && next != id, "{told:?}");
    // Without the format nothing of it changes.
    let plain = Ended::of(&stage.command(&arguments).output().unwrap());
    assert!(plain.stderr.starts_with("window"), "{}", plain.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_the_program_is_one_line_too() {
    let stage = Stage::new(62, 60, &Mix::each(1), Faults::default()).await;
    for (arguments, code, message) in [
        (&["--sinse", "2024-05-01"][..], 78, "--sinse"),
        (&["apply", "nowhere/plan.csv"][..], 78, "there is no plan at"),
        (&["--config", "nowhere.toml"][..], 78, "there is no configuration"),
        (&["status", "--max-age", "x"][..], 78, "is not a duration"),
    ] {
        let ended = run(&stage, "warn", arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?} {}{}", ended.stdout, ended.stderr);
        let (told, _) = lines(&ended);
        let last = told.last().unwrap();
        assert_eq!(last["level"], "ERROR", "{last}");
        let said = last["fields"]["message"].as_str().unwrap();
        assert!(said.contains(message), "{said}");
        assert!(last["fields"]["hint"].is_string(), "{last}");
    }
    std::fs::write(stage.folder.path().join("stripe.key"), "rk_live_wrong").unwrap();
    let ended = Ended::of(&{
        let mut command = stage.run_command(&[]);
        command.env("RECON_LOG_FORMAT", "json");
        command.output().unwrap()
    });
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    let (told, _) = lines(&ended);
    assert_eq!(told.last().unwrap()["level"], "ERROR");
    assert!(!ended.stderr.contains("rk_live_wrong"));
}
