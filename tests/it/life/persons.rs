//! What persons decide, over time and at once, and what a role that only reads may see.

use super::{by, ends, execute, last, rows, run};
use crate::postgres::Place;
use crate::stage::Stage;
use recon::demo::emulator::Faults;
use recon::demo::faults::{Fault, Mix};
use recon::record::format_instant;
use recon::store::Database;

const DAY_S: i64 = 86_400;

async fn stage(fault: Fault) -> Stage {
    Stage::new(9, 160, &Mix::only(fault), Faults::default()).await
}

/// Days after the world's, as a date.
fn day(stage: &Stage, days: i64) -> String {
    let at_us = stage.world.now_us + days * DAY_S * 1_000_000;
    format_instant(at_us, chrono_tz::Tz::UTC).chars().take(10).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acceptance_counts_until_its_day_is_over_and_for_its_amount_only() {
    let stage = stage(Fault::AmountOther).await;
    let ended = run(&stage, 0);
    ends(&ended, 1);
    assert_eq!((last(&ended, "findings"), last(&ended, "accepted")), (Some("1"), None), "{}", ended.stdout);
    let (id, object) = (rows(&stage)[0][0].to_owned(), rows(&stage)[0][7].to_owned());
    let until = day(&stage, 2);
    let accept = ["findings", "accept", &id, "--until", &until, "--reason", "agreed\nwith the bank"];
    let ended = by(&stage, "ana", 1, &accept);
    ends(&ended, 0);
    assert!(
        ended.stdout.starts_with(&format!("accepted {id} amount_mismatch {object} ")),
        "{}",
        ended.stdout
    );
    assert_eq!(ended.stdout.lines().last(), Some("outcome=clean findings=0"));
    let ended = by(&stage, "ana", 1, &accept);
    assert!(ended.stdout.contains(", as it was"), "{}", ended.stdout);
    assert_eq!(stage.ask("select cast(count(*) as text) from finding_action").await, "1", "said once");

    let ended = run(&stage, 2);
    ends(&ended, 0);
    assert_eq!((last(&ended, "outcome"), last(&ended, "findings")), (Some("clean"), Some("0")));
    assert_eq!(last(&ended, "accepted"), Some("1"), "{}", ended.stdout);
    let section = ended.stdout.split("Accepted, not counted\n").nth(1).unwrap();
    assert!(section.contains(&object) && section.contains("by ana: agreed with the bank"), "{section}");
    assert!(ended.stdout.contains("tied out"), "it still explains its difference: {}", ended.stdout);
    let row = &rows(&stage)[0];
    assert_eq!(&row[19], "accepted");
    assert!(row[22].starts_with("accepted by ana until "), "{row:?}");
    let status = by(&stage, "", 3, &["status"]);
    assert!(status.stdout.lines().last().unwrap().contains(" findings=0 "), "{}", status.stdout);
    let listed = by(&stage, "", 3, &["findings", "list"]);
    assert_eq!(listed.stdout.lines().last(), Some("outcome=clean findings=0 listed=1 accepted=1"));

    // The last second of its day, and the first one after it.
    let midnight_s = (stage.world.now_us / 1_000_000 / DAY_S + 3) * DAY_S - stage.world.now_us / 1_000_000;
    ends(&run(&stage, midnight_s - 1), 0);
    let ended = run(&stage, midnight_s);
    ends(&ended, 1);
    assert_eq!(&rows(&stage)[0][19], "open");
    assert!(rows(&stage)[0][22].starts_with("the acceptance by ana ended "), "{:?}", rows(&stage)[0]);

    let until = day(&stage, 40);
    ends(
        &by(&stage, "bo", midnight_s, &["findings", "accept", &id[..8], "--until", &until, "--reason", "x"]),
        0,
    );
    ends(&run(&stage, midnight_s + 1), 0);
    let entry = rows(&stage)[0][9].to_owned();
    execute(
        &stage,
        &format!("update ledger_entry set amount_minor = amount_minor + 5 where entry_id = '{entry}'"),
    )
    .await;
    ends(&run(&stage, midnight_s + 2), 1);
    assert_eq!(&rows(&stage)[0][0], id, "the same break");
    assert!(rows(&stage)[0][22].starts_with("changed since bo accepted it"), "{:?}", rows(&stage)[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_planned_for_what_somebody_lives_with() {
    let stage = stage(Fault::MissedPayment).await;
    ends(&run(&stage, 0), 1);
    assert_eq!(stage.latest("plan.csv").lines().count(), 2);
    let id = rows(&stage)[0][0].to_owned();
    ends(
        &by(&stage, "ana", 1, &["findings", "accept", &id, "--until", &day(&stage, 9), "--reason", "why"]),
        0,
    );
    let plan = stage.reports().pop().unwrap().join("plan.csv");
    ends(&run(&stage, 2), 0);
    assert_eq!(stage.latest("plan.csv").lines().count(), 1);
    // The plan that was written before is one that somebody has read.
    stage.apply(&plan).await;
    ends(&run(&stage, 3), 0);
    assert!(rows(&stage).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closing_is_confirmed_by_a_run_or_said_to_be_unconfirmed() {
    let stage = stage(Fault::DuplicateDelivery).await;
    ends(&run(&stage, 0), 1);
    let id = rows(&stage)[0][0].to_owned();
    let close = ["findings", "close", &id, "--reason", "reversed by hand"];
    let refused = by(&stage, "ana", 1, &close);
    ends(&refused, 78);
    assert!(
        refused.stderr.contains("is not gone") && refused.stderr.contains("--unconfirmed"),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.errors().len(), 1);
    let word = ["findings", "close", &id, "--reason", "reversed by hand", "--unconfirmed", "--by", "ana"];
    ends(&by(&stage, "", 1, &word), 0);
    let listed = by(&stage, "", 1, &["findings", "list", "--status", "closed"]);
    assert!(listed.stdout.contains(&id), "{}", listed.stdout);
    ends(&run(&stage, 2), 1);
    assert_eq!(&rows(&stage)[0][19], "reopened", "the books say otherwise");
    let plan = stage.reports().pop().unwrap().join("plan.csv");
    stage.apply(&plan).await;
    ends(&run(&stage, 3), 0);
    let clearing =
        stage.ask("select cleared_run from finding where status = 'cleared' and kind = 'duplicate_effect'");
    let clearing = clearing.await;
    let ended = by(&stage, "ana", 4, &close);
    ends(&ended, 0);
    assert!(ended.stdout.contains(&format!("confirmed by run {clearing}")), "{}", ended.stdout);
    let shown = by(&stage, "", 4, &["findings", "show", &id]).stdout;
    let acts: Vec<&str> = shown.lines().filter(|line| line.contains(" by ana")).collect();
    assert!(shown.contains("status            closed"), "{shown}");
    assert!(acts[0].contains("on their own word, unconfirmed: reversed by hand"), "{shown}");
    assert!(acts[1].contains(&format!("closed by ana, confirmed by run {clearing}")), "{shown}");
    let refused =
        by(&stage, "ana", 5, &["findings", "accept", &id, "--until", &day(&stage, 9), "--reason", "x"]);
    ends(&refused, 78);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_stays_through_runs_and_the_list_can_be_narrowed() {
    let mix = Mix(vec![(Fault::MissedPayment, 1), (Fault::AmountOther, 1), (Fault::OrphanUnknown, 1)]);
    let stage = Stage::new(9, 160, &mix, Faults::default()).await;
    stage.configure("[corrections]", "[owners]\nmissed_event = \"finance\"\n[corrections]");
    ends(&run(&stage, 0), 1);
    let of = |kind: &str| rows(&stage).into_iter().find(|row| &row[1] == kind).unwrap();
    let (missed, amount) = (of("missed_event"), of("amount_mismatch"));
    assert_eq!((&missed[20], &amount[20]), ("finance", ""));
    ends(&by(&stage, "ana", 1, &["findings", "assign", &missed[0], &amount[0], "--to", "bo da Silva"]), 0);
    ends(&run(&stage, 2), 1);
    assert_eq!((&of("missed_event")[20], &of("amount_mismatch")[20]), ("bo da Silva", "bo da Silva"));
    for (arguments, count) in [
        (&["--owner", "bo da Silva"][..], 2),
        (&["--owner", "finance"], 0),
        (&["--owner", ""], 1),
        (&["--kind", "orphan_effect"], 1),
        (&["--severity", "minor"], 0),
        (&["--account", ""], 3),
        (&["--account", "acct_none"], 0),
        (&["--status", "open", "--status", "new"], 3),
        (&["--status", "accepted"], 0),
        (&["--older-than", "40d"], 3),
        (&["--older-than", "50d"], 0),
    ] {
        let words: Vec<&str> = ["findings", "list"].into_iter().chain(arguments.iter().copied()).collect();
        let ended = by(&stage, "", 45 * DAY_S, &words);
        ends(&ended, 0);
        let listed = last(&ended, "listed").unwrap();
        assert_eq!(listed, count.to_string(), "{arguments:?}: {}", ended.stdout);
        let word = if count == 0 { "outcome=clean " } else { "outcome=findings " };
        assert!(ended.stdout.lines().last().unwrap().starts_with(word), "{}", ended.stdout);
    }
    let aged = by(&stage, "", 45 * DAY_S, &["findings", "list"]).stdout;
    let bucket = aged.lines().find(|line| line.contains("31-90 days")).unwrap();
    assert!(bucket.contains("  3  ") || bucket.contains("      3"), "{aged}");
    assert!(bucket.contains(&amount[10].to_uppercase()), "{aged}");
}

/// Two persons and a run at once: every act is there, and each finding has both.
#[tokio::test(flavor = "multi_thread")]
async fn persons_and_a_run_at_once_lose_nothing_of_each_other() {
    let mix = Mix(vec![(Fault::AmountOther, 3), (Fault::AmountRounding, 3)]);
    let stage = Stage::new(4, 160, &mix, Faults::default()).await;
    ends(&run(&stage, 0), 1);
    let ids: Vec<String> = rows(&stage).iter().map(|row| row[0].to_owned()).collect();
    assert_eq!(ids.len(), 6);
    let until = day(&stage, 9);
    let mut children = vec![stage.run_command(&[]).spawn().unwrap()];
    for (at, id) in ids.iter().enumerate() {
        let reason = format!("reason {at}");
        let words = [
            vec!["findings", "assign", id, "--to", "bo", "--by", "ana"],
            vec!["findings", "accept", id, "--until", &until, "--reason", &reason, "--by", "carl"],
        ];
        children.extend(words.map(|words| stage.command(&words).spawn().unwrap()));
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        let code = output.status.code().unwrap();
        assert!([0, 1].contains(&code), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let acts = "select finding_id || ' ' || action || ' ' || actor from finding_action order by 1";
    let mut expected: Vec<String> =
        ids.iter().flat_map(|id| [format!("{id} accept carl"), format!("{id} assign ana")]).collect();
    expected.sort();
    assert_eq!(stage.rows(acts).await, expected);
    ends(&run(&stage, 1), 0);
    assert!(rows(&stage).iter().all(|row| &row[19] == "accepted" && &row[20] == "bo"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_only_reads_lists_and_shows_and_cannot_act() {
    let stage = stage(Fault::DuplicateDelivery).await;
    ends(&run(&stage, 0), 1);
    let id = rows(&stage)[0][0].to_owned();
    let tables = ["finding", "finding_action", "run", "correction", "correction_actor"];
    let before = counts(&stage, &tables).await;
    let looks: [&[&str]; 4] =
        [&["findings", "list"], &["findings", "list", "--json"], &["findings", "show", &id], &["show", &id]];
    let said: Vec<String> = looks.iter().map(|words| by(&stage, "", 1, words).stdout).collect();
    assert_eq!(counts(&stage, &tables).await, before, "looking writes nothing");
    if Place::asked_for() == Database::Sqlite {
        return;
    }
    let role = format!("reader_{}", std::process::id());
    execute(&stage, &format!("create role {role} login")).await;
    execute(&stage, &format!("grant select on all tables in schema public to {role}")).await;
    let url = stage.url();
    stage.configure(&url, &url.replace("recon@", &format!("{role}@")));
    for (words, expected) in looks.iter().zip(&said) {
        let ended = by(&stage, "", 1, words);
        ends(&ended, 0);
        assert_eq!(ended.stdout, *expected, "{words:?}");
    }
    let refused = by(&stage, "ana", 1, &["findings", "assign", &id, "--to", "bo"]);
    ends(&refused, 2);
    assert!(refused.stderr.contains("permission denied"), "{}", refused.stderr);
    execute(&stage, &format!("drop owned by {role}")).await;
    execute(&stage, &format!("drop role {role}")).await;
}

async fn counts(stage: &Stage, tables: &[&str]) -> Vec<String> {
    let mut counts = Vec::new();
    for table in tables {
        counts.push(stage.ask(&format!("select cast(count(*) as text) from {table}")).await);
    }
    counts
}
