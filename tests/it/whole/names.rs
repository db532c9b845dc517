//! A payment of the window whose invoice nothing in the window names, and what nobody could read.

use super::account::{Account, DAY_S, Paid};
use super::{AFTER_S, BEFORE_S, FROM_S, INSIDE_S, UNTIL_S, check, found, planned, run};
use crate::stage::Stage;
use recon::demo::emulator::Faults;
use recon::demo::faults::Mix;
use recon::demo::world::Stream;

/// An invoice of before the window, paid in two parts: the first one inside, the other one after it. The books
/// have it as one row, on the invoice and `booked_s`, or not at all.
fn in_parts(booked_s: Option<i64>) -> (Account, [Paid; 2]) {
    let mut account = Account::default();
    let parts = [account.pay(600, INSIDE_S), account.pay(400, AFTER_S + DAY_S)];
    let invoice = account.invoice_of(&parts, BEFORE_S);
    if let Some(at_s) = booked_s {
        account.book("credit", &invoice, 1_000, at_s, "");
    }
    (account, parts)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_whose_invoice_nothing_names_is_not_booked_again() {
    let (account, _) = in_parts(Some(AFTER_S + DAY_S + 9));
    let stage = check("booked on the invoice", &account, &[]).await;
    assert_eq!(planned(&stage), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_nobody_booked_is_still_planned() {
    let (account, parts) = in_parts(None);
    let expected =
        format!("unapplied_event marked_processed_without_effect {} replay_event", parts[0].charge);
    let stage = check("booked nowhere", &account, &[&expected]).await;
    assert_eq!(planned(&stage), 1);
}

/// One payment paid the whole invoice, and the books have it on the invoice, days after the window.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_is_booked_on_an_old_invoice_late_is_not_booked_again() {
    let mut account = Account::default();
    let paid = account.pay(600, INSIDE_S);
    let invoice = account.invoice(&paid, BEFORE_S);
    account.book("credit", &invoice, 600, AFTER_S + DAY_S, &paid.event);
    check("booked late", &account, &[]).await;
}

/// The same on the checkout session that began the payment, or its subscription; no event says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_is_booked_on_an_old_session_late_is_not_booked_again() {
    for is_subscription in [false, true] {
        let mut account = Account::default();
        let paid = account.pay(600, INSIDE_S);
        let invoice = is_subscription.then(|| account.invoice(&paid, BEFORE_S));
        let session = account.session(&paid, invoice.as_deref(), BEFORE_S);
        account.book("credit", &session, 600, AFTER_S + DAY_S, "");
        let stage = check(if is_subscription { "subscription" } else { "payment" }, &account, &[]).await;
        assert_eq!(planned(&stage), 0);
    }
}

/// Where the provider will not say, what would be booked says so, and is no question of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_booked_without_knowing_its_invoice_says_so() {
    let mut account = Account::default();
    let paid = account.pay(600, INSIDE_S);
    let stage =
        account.stage_with(3, Faults { forbidden: vec![Stream::Invoices], ..Faults::default() }).await;
    run(&stage, FROM_S, UNTIL_S, &[]);
    let findings = stage.latest("findings.csv");
    let line = findings.lines().find(|line| line.contains(&*paid.charge)).unwrap();
    assert!(line.contains("unapplied_event,") && line.contains("whether an invoice was paid"), "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offline_run_that_has_read_nothing_accuses_nobody() {
    let stage = Stage::new(3, 200, &Mix(Vec::new()), Faults::default()).await;
    let ended = run(&stage, FROM_S, UNTIL_S, &["--offline"]);
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    let accused = found(&stage);
    assert!(accused.iter().all(|row| row.starts_with("coverage_gap ")), "{accused:?}");
    assert_eq!(planned(&stage), 0);
    let manifest: serde_json::Value = serde_json::from_str(&stage.latest("manifest.json")).unwrap();
    let not_judged = manifest["totals"]["counted"]["not_judged"].as_u64();
    assert!(not_judged.is_some_and(|count| count > 10), "{manifest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn charges_that_the_key_may_not_read_make_no_orphans() {
    let faults = Faults { forbidden: vec![Stream::Charges], ..Faults::default() };
    let stage = Stage::new(3, 200, &Mix(Vec::new()), faults).await;
    let ended = run(&stage, FROM_S, UNTIL_S, &[]);
    assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
    let accused = found(&stage);
    assert!(accused.iter().all(|row| !row.starts_with("orphan_effect ")), "{accused:?}");
}
