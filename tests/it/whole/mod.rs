//! Payments that a window cuts: what of them lies outside must be asked for before anybody is accused.

mod account;
mod cuts;
mod names;

use crate::stage::{Ended, Stage};
use account::{Account, DAY_S, NOW_S, Paid};
use recon::record::format_instant;

/// The window: the second week before now.
const FROM_S: i64 = NOW_S - 14 * DAY_S;
const UNTIL_S: i64 = NOW_S - 7 * DAY_S;
const BEFORE_S: i64 = FROM_S - 3 * DAY_S;
const INSIDE_S: i64 = FROM_S + 3 * DAY_S;
const AFTER_S: i64 = UNTIL_S + 2 * DAY_S;

pub(super) fn run(stage: &Stage, from_s: i64, until_s: i64, more: &[&str]) -> Ended {
    let instant = |at_s: i64| format_instant(at_s * 1_000_000, chrono_tz::Tz::UTC);
    let (from, until) = (instant(from_s), instant(until_s));
    Ended::of(&stage.command(&[&["--since", &from, "--until", &until][..], more].concat()).output().unwrap())
}

/// What was found besides the cut-off's own, as `kind cause object correction`.
pub(super) fn found(stage: &Stage) -> Vec<String> {
    let text = stage.latest("findings.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers = reader.headers().unwrap().clone();
    let column = |name: &str| headers.iter().position(|header| header == name).unwrap();
    let columns = ["kind", "cause", "object_id", "correction"].map(column);
    let rows = reader.records().map(|row| row.unwrap());
    let mut found: Vec<String> = rows
        .filter(|row| &row[columns[0]] != "timing_difference")
        .map(|row| columns.map(|at| row[at].to_owned()).join(" "))
        .collect();
    found.sort();
    found
}

pub(super) fn unexplained(stage: &Stage) -> Vec<String> {
    let text = stage.latest("tie_out.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let at = reader.headers().unwrap().iter().position(|name| name == "unexplained_minor").unwrap();
    let rows = reader.records().map(|row| row.unwrap());
    rows.filter(|row| &row[at] != "0").map(|row| format!("{row:?}")).collect()
}

pub(super) fn planned(stage: &Stage) -> usize {
    stage.latest("plan.csv").lines().count() - 1
}

/// A run over the window, and the same again offline, finds exactly this.
async fn check(what: &str, account: &Account, expected: &[&str]) -> Stage {
    let stage = account.stage(3).await;
    for more in [&[][..], &["--offline"][..]] {
        let ended = run(&stage, FROM_S, UNTIL_S, more);
        assert_eq!(
            ended.code,
            Some(i32::from(!expected.is_empty())),
            "{what} {more:?}: {}{}",
            ended.stdout,
            ended.stderr
        );
        assert_eq!(found(&stage), expected, "{what} {more:?}");
        assert_eq!(unexplained(&stage), [""; 0], "{what} {more:?}");
    }
    stage
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refunds_that_name_the_payment_and_lie_on_both_sides_of_the_cut() {
    for (other_s, other_minor) in [(AFTER_S, 300), (AFTER_S, 200), (BEFORE_S, 300), (BEFORE_S, 200)] {
        for on_charge in [true, false] {
            let mut account = Account::default();
            let paid = account.pay_booked(2_000, BEFORE_S - DAY_S);
            for (amount_minor, at_s) in [(300, INSIDE_S), (other_minor, other_s)] {
                let (_, event) = account.refund(&paid, amount_minor, at_s);
                let id = if on_charge { &paid.charge } else { &paid.intent };
                account.book("refund", id, amount_minor, at_s + 6, &event);
            }
            check(&format!("{other_s} {other_minor} {on_charge}"), &account, &[]).await;
        }
    }
}

/// A charge that was given back and made again: the second one lies after the window.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_on_another_charge_of_the_intent_is_not_counted_twice() {
    let mut account = Account::default();
    let intent = account.intent(500, INSIDE_S);
    for at_s in [INSIDE_S, AFTER_S] {
        let paid = account.charge(&intent, 500, at_s);
        account.book("credit", &paid.charge, 500, at_s + 1, &paid.event);
        if at_s == INSIDE_S {
            let (refund, event) = account.refund(&paid, 500, at_s + 60);
            account.book("refund", &refund, 500, at_s + 65, &event);
        }
    }
    check("two charges", &account, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispute_of_another_time_says_what_the_status_must_be() {
    for lost_s in [BEFORE_S, AFTER_S] {
        for (status, is_wrong) in [("pending", true), ("dispute_lost", false)] {
            let mut account = Account::default();
            let paid_s = if lost_s == BEFORE_S { BEFORE_S - DAY_S } else { INSIDE_S };
            let paid = account.pay_booked(5_000, paid_s);
            let (dispute, event) = account.dispute(&paid, lost_s);
            account.book("dispute_withdrawn", &dispute, 5_000, lost_s + 5, &event);
            account.state(&paid.intent, status, 0, INSIDE_S + DAY_S);
            let stage = account.stage(3).await;
            let ended = run(&stage, FROM_S, UNTIL_S, &[]);
            assert_eq!(ended.code, Some(i32::from(is_wrong)), "{status} {lost_s}: {}", ended.stdout);
            assert_eq!(planned(&stage), usize::from(is_wrong), "{status} {lost_s}: {:?}", found(&stage));
            let plan = stage.reports().pop().unwrap().join("plan.csv");
            stage.apply(&plan).await;
            let sql = format!("select status from object_state where object_id = '{}'", paid.intent);
            assert_eq!(stage.ask(&sql).await, "dispute_lost", "{status} {lost_s}");
        }
    }
}

/// Money of a time before the window that was booked inside, on whichever id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_of_before_the_window_that_was_booked_inside_is_of_another_period() {
    for kind in ["credit", "refund", "dispute_withdrawn"] {
        for on in ["ch", "pi", "in", "cs", "cs of in"] {
            let mut account = Account::default();
            let paid_s = BEFORE_S - DAY_S;
            let paid = account.pay(5_000, paid_s);
            let mut invoice = None;
            if on.contains("in") {
                invoice = Some(account.invoice(&paid, paid_s - 50));
            }
            let id = match on {
                "ch" => paid.charge.clone(),
                "pi" => paid.intent.clone(),
                "in" => invoice.clone().unwrap(),
                _ => account.session(&paid, invoice.as_deref(), paid_s - 60),
            };
            if kind == "credit" {
                account.book(kind, &id, 5_000, INSIDE_S, &paid.event);
                account.state(&id, "paid", 0, INSIDE_S);
            } else {
                account.book("credit", &paid.charge, 5_000, paid_s + 9, &paid.event);
                let (amount_minor, (_, event)) = match kind {
                    "refund" => (700, account.refund(&paid, 700, BEFORE_S)),
                    _ => (5_000, account.dispute(&paid, BEFORE_S)),
                };
                account.book(kind, &id, amount_minor, INSIDE_S, &event);
            }
            check(&format!("{kind} on {on}"), &account, &[]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_smaller_charge_that_was_given_back_whole_is_no_second_payment() {
    let mut account = Account::default();
    let intent = account.intent(50, INSIDE_S);
    let first = account.charge(&intent, 50, INSIDE_S);
    let (refund, event) = account.refund(&first, 50, INSIDE_S + 30);
    account.book("refund", &refund, 50, INSIDE_S + 35, &event);
    let second = account.charge(&intent, 100, INSIDE_S + 60);
    for Paid { charge, amount_minor, at_s, event, .. } in [first, second] {
        account.book("credit", &charge, amount_minor, at_s + 9, &event);
    }
    check("50 given back, then 100", &account, &[]).await;
}

/// Refunds of one payment on both sides of the cut, and whether the books have the one inside twice.
fn cut_refunds(times: usize) -> (Account, Paid) {
    let mut account = Account::default();
    let paid = account.pay_booked(2_000, BEFORE_S - DAY_S);
    for (at_s, times) in [(INSIDE_S, times), (AFTER_S, 1)] {
        let (_, event) = account.refund(&paid, 300, at_s);
        for time in 0..times {
            account.book("refund", &paid.intent, 300, at_s + 6 + i64::try_from(time).unwrap(), &event);
        }
    }
    (account, paid)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_true_repeat_of_a_cut_payment_is_still_found() {
    let (account, paid) = cut_refunds(2);
    let expected = format!("duplicate_effect  {} reverse_entry", paid.intent);
    let stage = check("twice", &account, &[&expected]).await;
    assert_eq!(planned(&stage), 1);
}

/// Nobody was asked: what it looks like is for a person, and nothing is planned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_could_not_be_asked_for_whole_is_never_corrected() {
    let (account, _) = cut_refunds(1);
    let stage = account.stage(3).await;
    stage.configure("[corrections]", "[limits]\nask_count_max = 0\n[corrections]");
    for more in [&[][..], &["--offline"][..]] {
        run(&stage, FROM_S, UNTIL_S, more);
        let rows = found(&stage);
        assert!(
            rows.iter().any(|row| row.starts_with("needs_review not_asked_whole re_")),
            "{more:?}: {rows:?}"
        );
        assert_eq!((planned(&stage), unexplained(&stage)), (0, Vec::new()), "{more:?}: {rows:?}");
    }
}

/// What stands on exact ids needs no question, and is found and corrected however many payments there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_on_exact_ids_is_corrected_without_asking() {
    let mut account = Account::default();
    let paid = account.pay(700, INSIDE_S);
    for at_s in [INSIDE_S + 5, INSIDE_S + 6] {
        account.book("credit", &paid.charge, 700, at_s, &paid.event);
    }
    let stage = account.stage(3).await;
    stage.configure("[corrections]", "[limits]\nask_count_max = 0\n[corrections]");
    run(&stage, FROM_S, UNTIL_S, &[]);
    assert_eq!(found(&stage), [format!("duplicate_effect  {} reverse_entry", paid.charge)]);
    assert_eq!(planned(&stage), 1);
}
