//! Runs, watermarks, the history of findings, and `recon status`.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

use super::books::*;
use recon::commands::Outcome;
use recon::commands::status::{StatusArgs, status_with};
use recon::findings::{Finding, Standing};
use recon::record::Window;
use recon::store::history::Judged;
use recon::store::runs::{self, End, RunOutcome};
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR_US: i64 = 3_600_000_000;

async fn finish(
    books: &Books,
    run_id: &str,
    at_us: i64,
    outcome: RunOutcome,
    findings: &[Finding],
    watermark_us: i64,
) -> Vec<(i64, Standing)> {
    let judged = Judged { scopes: vec![scope()], window: Window { from_us: 0, until_us: 10_000_000 } };
    let watermarks = BTreeMap::from([(scope(), watermark_us)]);
    let end = End {
        run_id,
        seen_at_us: at_us,
        finished_at_us: at_us,
        outcome,
        error: "",
        findings,
        judged: &judged,
        watermarks: &watermarks,
    };
    let seen = runs::finish(&books.store, &end).await.unwrap();
    findings
        .iter()
        .map(|finding| seen[&finding.id()])
        .map(|seen| (seen.first_seen_us, seen.standing))
        .collect()
}

/// The first report is written before the run ends; what it says of when it saw a finding is what is kept.
#[tokio::test]
async fn a_finding_was_first_seen_when_the_first_report_says() {
    let books = Books::new().await;
    let found = [missed("ch_1", 5)];
    books.start_run("a", 10).await;
    let judged = Judged { scopes: vec![scope()], window: Window { from_us: 0, until_us: 10_000_000 } };
    let end = End {
        run_id: "a",
        seen_at_us: 10,
        finished_at_us: 99,
        outcome: RunOutcome::Findings,
        error: "",
        findings: &found,
        judged: &judged,
        watermarks: &BTreeMap::new(),
    };
    runs::finish(&books.store, &end).await.unwrap();
    books.start_run("b", 100).await;
    assert_eq!(finish(&books, "b", 110, RunOutcome::Findings, &found, 1).await, [(10, Standing::Open)]);
}

#[tokio::test]
async fn a_finding_is_new_then_open_then_cleared_then_reopened() {
    let books = Books::new().await;
    let found = [missed("ch_1", 5)];
    for run_id in ["a", "b", "c", "d", "e", "f"] {
        books.start_run(run_id, 1).await;
    }
    assert_eq!(finish(&books, "a", 10, RunOutcome::Findings, &found, 1).await, [(10, Standing::New)]);
    assert_eq!(
        finish(&books, "a", 11, RunOutcome::Findings, &found, 1).await,
        [(10, Standing::New)],
        "resumed"
    );
    assert_eq!(finish(&books, "b", 20, RunOutcome::Findings, &found, 1).await, [(10, Standing::Open)]);
    assert!(finish(&books, "c", 30, RunOutcome::Incomplete, &[], 1).await.is_empty());
    let status = "select status || coalesce(cast(cleared_us as text), '') from finding";
    assert_eq!(books.text(status).await, "open", "a run that did not see everything clears nothing");
    finish(&books, "d", 40, RunOutcome::Clean, &[], 1).await;
    assert_eq!(books.text(status).await, "cleared40");
    assert_eq!(finish(&books, "e", 50, RunOutcome::Findings, &found, 1).await, [(10, Standing::Reopened)]);
    assert_eq!(finish(&books, "f", 60, RunOutcome::Findings, &found, 1).await, [(10, Standing::Open)]);
}

#[tokio::test]
async fn a_run_clears_only_what_it_looked_for() {
    let books = Books::new().await;
    let other_window = Finding { judged_at_us: 10_000_000, ..missed("ch_1", 5) };
    let other_account =
        Finding { scope: recon::record::Scope::new("stripe", "acct_2", "live"), ..missed("ch_2", 5) };
    books.start_run("a", 1).await;
    books.start_run("b", 1).await;
    finish(&books, "a", 10, RunOutcome::Findings, &[other_window, other_account, missed("ch_3", 5)], 1).await;
    finish(&books, "b", 20, RunOutcome::Clean, &[], 1).await;
    assert_eq!(books.number("select count(*) from finding where status = 'cleared'").await, 1);
}

#[tokio::test]
async fn a_watermark_moves_forward_and_only_with_a_run_that_saw_everything() {
    let books = Books::new().await;
    for run_id in ["a", "b", "c"] {
        books.start_run(run_id, 1).await;
    }
    let watermark = || async { runs::watermark(books.store.pool(), &scope()).await.unwrap() };
    finish(&books, "a", 999, RunOutcome::Incomplete, &[], 50).await;
    assert_eq!(watermark().await, None);
    finish(&books, "b", 999, RunOutcome::Clean, &[], 50).await;
    assert_eq!(watermark().await, Some(50));
    finish(&books, "c", 9_999, RunOutcome::Clean, &[], 40).await;
    assert_eq!(watermark().await, Some(50), "an older window does not move it back");
}

async fn status(books: &Books, max_age_hours: u64, now_us: i64) -> (Outcome, String) {
    let mut out = Vec::new();
    let args = StatusArgs { max_age: Some(Duration::from_secs(max_age_hours * 3_600)) };
    let outcome = status_with(&books.settings(), &args, now_us, &mut out).await.unwrap();
    (outcome, String::from_utf8(out).unwrap())
}

#[tokio::test]
async fn c80_an_old_success_and_a_run_that_never_ended_are_not_silence() {
    let books = Books::new().await;
    let (outcome, text) = status(&books, 26, 0).await;
    assert_eq!(outcome, Outcome::Incomplete, "no run at all");
    assert!(
        text.contains("no run has ever seen everything")
            && text.ends_with("last_success=none age=none unfinished=1 latest=started\n"),
        "{text}"
    );
    let success_us = 100 * HOUR_US;
    books.start_run("nightly_1", success_us - 1).await;
    finish(&books, "nightly_1", success_us, RunOutcome::Findings, &[missed("ch_1", 5)], 1).await;
    books.start_run("nightly_2", success_us + 24 * HOUR_US).await;
    books.start_run("nightly_3", success_us + 25 * HOUR_US).await;
    finish(&books, "nightly_3", success_us + 25 * HOUR_US, RunOutcome::Incomplete, &[], 1).await;
    let (outcome, text) = status(&books, 26, success_us + 26 * HOUR_US).await;
    assert_eq!(outcome, Outcome::Clean, "{text}");
    let last = "outcome=findings findings=1 last_success=nightly_1 age=93600s unfinished=1 latest=incomplete";
    assert_eq!(text.lines().last(), Some(last), "fresh, and what it found is not hidden");
    let (outcome, text) = status(&books, 26, success_us + 27 * HOUR_US).await;
    assert_eq!((outcome, outcome.exit_code()), (Outcome::Incomplete, 2));
    assert!(text.contains("nightly_2 started 1970-01-06T04:00:00+00:00 and has not ended"), "{text}");
    let last =
        "outcome=incomplete findings=1 last_success=nightly_1 age=97200s unfinished=1 latest=incomplete";
    assert_eq!(text.lines().last(), Some(last));
}

#[tokio::test]
async fn a_run_that_failed_says_why_and_one_that_ended_stays_as_it_ended() {
    let books = Books::new().await;
    for run_id in ["fine", "failed"] {
        books.start_run(run_id, 1).await;
    }
    finish(&books, "fine", 10, RunOutcome::Clean, &[], 1).await;
    runs::fail(&books.store, "fine", 11, "the summary could not be printed").await.unwrap();
    runs::fail(&books.store, "failed", 12, "read stripe: no such host").await.unwrap();
    let failed = runs::by_id(books.store.pool(), "failed").await.unwrap().unwrap();
    assert_eq!((failed.outcome, failed.finished_at_us), (RunOutcome::Incomplete, Some(12)));
    let fine = runs::by_id(books.store.pool(), "fine").await.unwrap().unwrap();
    assert_eq!((fine.outcome, fine.finished_at_us, &*fine.error), (RunOutcome::Clean, Some(10), ""));
    let (_, text) = status(&books, 26, 20).await;
    assert!(text.contains("\n    incomplete: read stripe: no such host\n"), "{text}");
    assert!(!text.contains("failed started"), "it has ended: {text}");
}

#[tokio::test]
async fn a_store_of_an_earlier_version_can_still_be_looked_at() {
    let books = Books::new().await;
    books.start_run("old", 1).await;
    finish(&books, "old", 10, RunOutcome::Clean, &[], 1).await;
    let drop = "alter table run drop column error";
    sqlx::query(drop).execute(books.store.pool()).await.unwrap();
    let (outcome, text) = status(&books, 26, 20).await;
    assert_eq!(outcome, Outcome::Clean, "{text}");
    assert!(text.contains("outcome=clean findings=0 last_success=old "), "{text}");
}
