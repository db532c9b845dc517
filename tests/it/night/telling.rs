//! Who is told of a run, of what, and that nothing of it changes how the run ends.

use super::post::{mail_server, mails};
use crate::ear::{Ear, Heard};
use crate::stage::{Ended, Stage};
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;

const HOOK: &str = "/hook";

async fn stage() -> Stage {
    Stage::new(41, 160, &Mix::each(1), Faults::default()).await
}

/// Adds settings to the end of the stage's configuration.
fn add(stage: &Stage, more: &str) {
    let text = std::fs::read_to_string(stage.config()).unwrap();
    std::fs::write(stage.config(), format!("{text}{more}\n")).unwrap();
}

fn texts(calls: &[Heard]) -> Vec<String> {
    calls
        .iter()
        .map(|call| {
            assert_eq!((&*call.method, call.header("content-type")), ("POST", "application/json"));
            let body: serde_json::Value = call.json();
            assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
            body["text"].as_str().unwrap().to_owned()
        })
        .collect()
}

/// Nothing but hashes, kinds, sums and places is told: no id of an object, no name, no address.
fn holds_nobody(stage: &Stage, text: &str) {
    for prefix in ["ch_", "pi_", "cus_", "evt_", "re_", "dp_", "in_", "sk_", "@"] {
        assert!(!text.contains(prefix), "{prefix} in {text}");
    }
    assert!(!text.contains(&stage.emulator.key), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c61_only_what_is_new_is_told_and_nobody_is_named() {
    let (stage, ear) = (stage().await, Ear::open().await);
    let url = &ear.root;
    add(&stage, &format!("[notify]\nrun_url = \"{url}{HOOK}\"\ndead_man_url = \"{url}/alive?state=ok\""));
    let ended = stage.run(&[]);
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""), "{}", ended.stdout);
    let told = texts(&ear.take(HOOK));
    assert_eq!(told.len(), 1, "{told:?}");
    let findings = stage.latest("findings.csv");
    let rows: Vec<&str> =
        findings.lines().skip(1).filter(|line| !line.contains(",timing_difference,")).collect();
    let count = rows.len();
    assert!(count > 5, "{findings}");
    assert!(told[0].starts_with(&format!("recon: {count} new findings, {count} in all\n")), "{}", told[0]);
    assert!(told[0].lines().nth(1).unwrap().starts_with("money, provider minus local: "), "{}", told[0]);
    // Every kind with its count, as the report has them.
    for line in told[0].lines().filter(|line| line.starts_with("  critical") || line.starts_with("  major")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = |row: &&&str| row.contains(&format!(",{},", words[1])) && row.contains(words[0]);
        assert_eq!(words[2], rows.iter().filter(is_it).count().to_string(), "{line}");
    }
    let report = stage.reports().pop().unwrap();
    assert!(told[0].contains(&format!("look: {}/findings.csv", report.display())), "{}", told[0]);
    assert!(told[0].contains(" status\nrun: "), "{}", told[0]);
    holds_nobody(&stage, &told[0].replace(&report.display().to_string(), ""));
    let pings = ear.take("/alive");
    assert_eq!(pings.iter().map(|call| &*call.method).collect::<Vec<_>>(), ["GET"]);
    // The same again: nothing is new, so nobody is bothered; the monitor hears of it.
    assert_eq!(stage.run(&[]).code, Some(1));
    assert_eq!(ear.take(HOOK).len(), 0);
    assert_eq!(ear.take("/alive").len(), 1);
    // Unless it is asked for.
    stage.configure("[notify]\n", "[notify]\nevery_run = true\n");
    assert_eq!(stage.run(&[]).code, Some(1));
    let told = texts(&ear.take(HOOK));
    assert!(told[0].starts_with(&format!("recon: nothing new, {count} in all\n")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c80_an_incomplete_run_is_always_told_and_the_monitor_hears_nothing() {
    let (stage, ear) = (stage().await, Ear::open().await);
    let url = &ear.root;
    add(
        &stage,
        &format!(
            "[notify]\nrun_url = \"{url}{HOOK}\"\ndead_man_url = \"{url}/alive\"\n[limits]\nattempts_max = 1"
        ),
    );
    // Nobody listens there.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    stage.configure(&stage.emulator.base_url, &format!("http://{nobody}"));
    for night in 1..=2 {
        let ended = stage.run(&[]);
        assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
        let told = texts(&ear.take(HOOK));
        assert_eq!(told.len(), 1, "night {night}");
        assert!(told[0].starts_with("recon: INCOMPLETE, nothing was reported"), "{}", told[0]);
        assert!(told[0].contains("\nwhy: read stripe from http://127.0.0.1"), "{}", told[0]);
        holds_nobody(&stage, &told[0]);
    }
    assert_eq!(ear.take("/alive").len(), 0, "silence is the alarm");
    // A window that cannot be seen whole is reported, told, and no success.
    stage.configure(&format!("http://{nobody}"), &stage.emulator.base_url);
    assert_eq!(stage.run(&[]).code, Some(1));
    assert_eq!((ear.take(HOOK).len(), ear.take("/alive").len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c82_what_could_not_be_told_changes_nothing_and_is_told_the_next_night() {
    let (stage, ear) = (stage().await, Ear::open().await);
    let url = &ear.root;
    add(&stage, &format!("[notify]\nrun_url = \"{url}{HOOK}\""));
    // A refusal is not tried again; a fault of the server is, three times in all.
    for (answers, calls) in [(&[404][..], 1), (&[500, 503, 500][..], 3)] {
        ear.answer(answers);
        let ended = stage.run(&[]);
        assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
        assert_eq!(ear.take(HOOK).len(), calls);
        let said = format!("answered {} (attempts: {calls})", answers[answers.len() - 1]);
        assert!(ended.stderr.contains(&said), "{}", ended.stderr);
        assert!(!ended.stderr.contains(&ear.root), "a URL may hold a secret: {}", ended.stderr);
    }
    // Open for two nights, and new to those who were never told.
    ear.answer(&[500]);
    let ended = stage.run(&[]);
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""));
    let told = texts(&ear.take(HOOK));
    assert_eq!(told.len(), 2, "tried again once");
    let findings = stage.latest("findings.csv");
    let count = findings.lines().skip(1).filter(|line| !line.contains(",timing_difference,")).count();
    assert!(told[1].starts_with(&format!("recon: {count} new findings, {count} in all\n")), "{}", told[1]);
    assert_eq!(stage.run(&[]).code, Some(1));
    assert_eq!(ear.take(HOOK).len(), 0, "told once");
    // An offline run asks nobody, and tells nobody.
    stage.configure("[notify]\n", "[notify]\nevery_run = true\n");
    assert!(matches!(stage.run(&["--offline"]).code, Some(1 | 2)));
    assert_eq!(ear.take(HOOK).len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_night_pings_and_says_nothing_unless_asked() {
    let stage = Stage::new(42, 120, &Mix::each(0), Faults::default()).await;
    let ear = Ear::open().await;
    let url = &ear.root;
    add(&stage, &format!("[notify]\nrun_url = \"{url}{HOOK}\"\ndead_man_url = \"{url}/alive\""));
    let ended = stage.run(&[]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{}", ended.stdout);
    assert_eq!((ear.take(HOOK).len(), ear.take("/alive").len()), (0, 1));
    stage.configure("[notify]\n", "[notify]\nevery_run = true\n");
    assert_eq!(stage.run(&[]).code, Some(0));
    let told = texts(&ear.take(HOOK));
    assert!(told[0].starts_with("recon: everything ties out\nwindow: "), "{told:?}");
    // A monitor that is away changes nothing, either.
    ear.answer(&[200, 404]);
    let ended = stage.run(&[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

const MAIL: &str = "[notify.mail]\nhost = \"localhost\"\nuser = \"recon\"\npassword = { file = \"smtp.password\" }\n\
     from = \"Recon <recon@example.com>\"\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_encrypted_to_everybody_and_no_address_is_shown() {
    let stage = stage().await;
    let folder = stage.folder.path();
    let server = mail_server(folder);
    std::fs::write(folder.join("smtp.password"), "correct horse\n").unwrap();
    let to = "to = [\"finance@example.com\", \"On Heard <oncall@example.com>\"]";
    add(&stage, &format!("{MAIL}port = {}\n{to}", server.port));
    let run = |ca: &str| {
        let mut command = stage.run_command(&[]);
        command.env("SSL_CERT_FILE", folder.join(ca));
        Ended::of(&command.output().unwrap())
    };
    // A server that nobody vouches for gets neither the password nor the text.
    std::fs::write(folder.join("none.pem"), "").unwrap();
    let ended = run("none.pem");
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("[notify.mail] was not reached"), "{}", ended.stderr);
    assert!(mails(folder).is_empty());
    let ended = run("ca.pem");
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""), "{}", ended.stdout);
    let got = mails(folder);
    assert_eq!(got.len(), 1, "{got:?}");
    assert_eq!(got[0]["to"], serde_json::json!(["finance@example.com", "oncall@example.com"]));
    assert_eq!((&got[0]["from"], &got[0]["tls"]), (&"recon@example.com".into(), &true.into()));
    assert_eq!(got[0]["type"], "text/plain");
    let subject = got[0]["subject"].as_str().unwrap();
    assert!(subject.starts_with("recon: ") && subject.contains(" new findings, "), "{subject}");
    let body = got[0]["body"].as_str().unwrap();
    assert!(body.starts_with(subject) && body.contains("/findings.csv"), "{body}");
    assert_eq!(run("ca.pem").code, Some(1));
    assert_eq!(mails(folder).len(), 1, "nothing new");
    // What a server answers may repeat an address.
    stage.configure(to, "to = [\"nobody@example.com\"]\n[notify]\nevery_run = true");
    stage.configure("[notify.mail]\n", "[notify]\nevery_run = true\n[notify.mail]\n");
    stage.configure("[\"nobody@example.com\"]\n[notify]\nevery_run = true", "[\"nobody@example.com\"]");
    let ended = run("ca.pem");
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stderr.contains("[notify.mail] was not reached: answered 550 (attempts: 1)"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("nobody") && !ended.stderr.contains("horse"), "{}", ended.stderr);
    // A wrong password is no reason to end otherwise, either.
    std::fs::write(folder.join("smtp.password"), "wrong-horse").unwrap();
    let ended = run("ca.pem");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("answered 535"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("horse"), "{}", ended.stderr);
}

#[test]
fn c82_settings_of_telling_are_checked_and_hold_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let base = "[[provider]]\nname = \"stripe\"\nkind = \"stripe\"\napi_key = { env = \"K\" }\n";
    let load = |more: &str| {
        let environment = |name: &str| (name == "K").then(|| format!("rk_live_{}", "x".repeat(24)));
        let path = folder.path().join("recon.toml");
        recon::config::parse(&format!("{base}{more}"), &path, &environment)
    };
    let mail = "[notify.mail]\nhost = \"m.example.com\"\nfrom = \"a@b.c\"\n";
    for (text, said) in [
        ("[notify]\nrun = true", "needs an address"),
        ("[notify]\nrun_url = \"http://hooks.example.com/x\"", "must be https"),
        ("[notify]\nrun_url = { env = \"MISSING\" }", "MISSING"),
        ("[notify]\ndead_man_url = \"https://me:secret@hc.example.com\"", "user name"),
        ("[notify]\ndead_man_url = \"hc.example.com\"", "must begin with https://"),
        ("[metrics]\npush_uri = \"x\"", "push_url"),
        (&format!("{mail}to = []"), "at least one"),
        (&format!("{mail}to = [\"finance\"]"), "no mail address"),
        (&format!("{mail}to = [\"a@b.c\"]\npassword = \"hunter2\""), "written out"),
        (&format!("{mail}to = [\"a@b.c\"]\nuser = \"u\""), "password"),
        (&format!("{mail}to = [\"a@b.c\"]\ntls = \"none\""), "on this machine"),
    ] {
        let error = load(text).expect_err(text);
        let told = format!("{error} {}", error.hint);
        assert!(told.contains(said), "{text}: {told}");
        assert!(!told.contains("hunter2") && !told.contains("secret@"), "{told}");
    }
    let night = load("[notify]\nurl = \"https://h.example.com/a\"\nrun = true").unwrap().night;
    assert_eq!(night.run_url.unwrap().reveal(), "https://h.example.com/a");
    let night = load("[notify]\nurl = \"https://h.example.com/a\"").unwrap().night;
    assert!(night.is_silent(), "the worker's alone");
    let night = load("[metrics]\npush_url = \"http://pushgateway:9091/metrics/job/recon\"").unwrap().night;
    assert!(!night.is_silent(), "numbers may go in the clear");
}
